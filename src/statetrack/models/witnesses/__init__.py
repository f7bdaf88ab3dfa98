"""Weights set by hand, so that "no weights can", "training did not find them" and "learned" stay apart.

For ever right, whatever small errors the steps have:

    toggle        e88-gain: a bit that each token keeps or flips (parity)
    permutations  e88-gain-rN: a product of permutations of N + 1 points (S3, S5)
    swaps         e88-gain: a product of swaps of two points, with one reflection (S5 by ten letters)
    automaton     tanh-rnn: any finite automaton, from its transition table

Right for a very long time, or in one kind of arithmetic alone: each is a counterexample to "such a model cannot", said
without naming the precision of numbers:

    counter       linear-rnn: a running sum against a threshold, to 2^24 (majority so far, at least three ones)
    sign          e88-published: parity by the sign of a state that shrinks for ever
    tiny_counter  e88: a running majority among numbers that tanh leaves as they are
    even_counter  mamba2: parity by a count that float32 rounds to even numbers
    falling_pair  e88: parity by two numbers at which this machine's tanh falls
    latch         linear-rnn: a bit that is set and held, by a sign that is halved at every step

Most take plain tables and return a model of the named configuration, as wide as it needs to be.
"""

from statetrack.models.witnesses.automaton import automaton
from statetrack.models.witnesses.counter import counter
from statetrack.models.witnesses.even_counter import even_counter
from statetrack.models.witnesses.falling_pair import falling_pair
from statetrack.models.witnesses.latch import latch
from statetrack.models.witnesses.permutations import permutations
from statetrack.models.witnesses.sign import sign
from statetrack.models.witnesses.swaps import swaps
from statetrack.models.witnesses.tiny_counter import tiny_counter
from statetrack.models.witnesses.toggle import toggle

__all__ = [
    "automaton", "counter", "even_counter", "falling_pair", "latch", "permutations", "sign", "swaps", "tiny_counter",
    "toggle",
]  # fmt: skip
