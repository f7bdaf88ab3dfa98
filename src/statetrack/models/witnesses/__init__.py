"""Weights set by hand, for ever right: so that "no weights can", "training did not find them" and "learned" stay apart.

    toggle        e88-gain: a bit that each token keeps or flips (parity)
    counter       linear-rnn: a running sum against a threshold (majority so far, at least three ones)
    permutations  e88-gain-rN: a product of permutations of N + 1 points (S3, S5)
    automaton     tanh-rnn: any finite automaton, from its transition table

Each takes plain tables and returns a model of the named configuration, as wide as it needs to be.
"""

from statetrack.models.witnesses.automaton import automaton
from statetrack.models.witnesses.counter import counter
from statetrack.models.witnesses.permutations import permutations
from statetrack.models.witnesses.toggle import toggle

__all__ = ["automaton", "counter", "permutations", "toggle"]
