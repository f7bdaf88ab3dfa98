"""What asking costs: tokens and time of a 300-turn episode, cached, resent, and in one teacher-forced pass.

    python -m benchmarks.ask            the whole table
    python -m benchmarks.ask --quick    60 turns

A random Llama of two layers; the oracle's replies are forced, so that every episode goes to its end. "resent" forgets
everything between turns, as a server without a cache does; within a turn it has one. One thread, and seconds of that
thread, so that other work on the machine does not count: on an idle core they are those of the clock.

The model's shape is chosen so that the parts of its work stand to each other as in models that people ask. A turn adds
about 12 tokens, near the original's 15: a chat format as lean as Mistral's, each digit a token. MLPs are wide beside
few heads: attention over 4,000 tokens is then a tenth of a pass, as with the width 2048 and MLPs of 8192 of a model of
a billion parameters, and not most of it, as in a narrow model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

import statetrack as st
from statetrack.asking import Dialogue, Episode, Rules, dialogue, solver
from statetrack.asking.engines.forced import score
from statetrack.asking.engines.hf import HFEngine
from statetrack.asking.run import ask
from tests.asking.tiny_models import llama, tokenizer

TURNS = 60 if "--quick" in sys.argv else 300
WORDS, WIDTH = 4096, 640
SHAPE = {"intermediate_size": 2048, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64}
TASK = st.task("track_the_stat.median")


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def engine(resend: bool = False) -> HFEngine:
    made = HFEngine(llama(WORDS, WIDTH, **SHAPE), tokenizer(lean=True), "hf:random", resend=resend)
    made.forced = lambda request: request.dialogue.reply(request.turn)
    return made


def converse(asked: HFEngine, dialogues: list[Dialogue]) -> list[Episode]:
    episodes = [Episode(each) for each in dialogues]
    while pairs := [(game, request) for game in episodes if (request := game.request()) is not None]:
        for (game, _), reply in zip(pairs, asked.replies([request for _, request in pairs])):
            game.receive(reply)
    return episodes


def line(what: str, value: str, asked: str, good: bool) -> bool:
    print(f"{what:<64}{value:>14}{asked:>12}{'' if good else '   NOT REACHED'}")
    return good


def local() -> bool:
    cached, resent = engine(), engine(resend=True)
    size = sum(weights.numel() for weights in cached.model.parameters())
    print(f"Llama, 2 layers, {size / 1e6:.1f} M parameters, float32, one thread, {TURNS} turns\n")
    game = dialogue(TASK, Rules(), 0, TURNS)
    converse(cached, [dialogue(TASK, Rules(), 1, 3)])  # warms up
    cached.processed = 0
    games: list[Episode] = []
    by_turns = timed(lambda: games.extend(converse(cached, [game])))
    assert games[0].status == "done"
    once = min(timed(lambda: score(cached, game)) for _ in range(3))
    again = timed(lambda: converse(resent, [game]))
    final = len(cached.chat.ids(games[0].messages, reply_follows=False))
    print(f"{'':<64}{'measured':>14}{'asked':>12}")
    line("final length, tokens", f"{final:,}", "", True)
    good = line("tokens processed / final length, cached", f"{cached.processed / final:.4f}", "<= 1.02",
                cached.processed <= 1.02 * final)  # fmt: skip
    line("tokens processed / final length, resent", f"{resent.processed / final:.1f}", "", True)
    line("seconds cached", f"{by_turns:.2f}", "", True)
    line("seconds resent", f"{again:.2f}", "", True)
    line("seconds teacher-forced", f"{once:.2f}", "", True)
    good &= line("resent / cached, time", f"{again / by_turns:.1f}", ">= 10", again >= 10 * by_turns)
    return good & line("cached / teacher-forced, time", f"{by_turns / once:.1f}", ">= 10", by_turns >= 10 * once)


def batched(rows: int = 8) -> None:
    asked, games = engine(), [dialogue(TASK, Rules(), row, TURNS // 5) for row in range(rows)]
    one = timed(lambda: converse(asked, games[:1]))
    all_at_once = timed(lambda: converse(asked, games))
    line(
        f"{rows} episodes of {TURNS // 5} turns one by one / in one batch, time",
        f"{rows * one / all_at_once:.1f}",
        "",
        True,
    )


def overhead() -> bool:
    """20 episodes of 300 turns with an answer that costs nothing."""
    ask(TASK, Rules(), solver("oracle"), [0])  # compiles the running median
    seconds = timed(lambda: ask(TASK, Rules(), solver("oracle"), range(20)))
    return line("20 x 300 turns with a free model, seconds", f"{seconds:.2f}", "< 1", seconds < 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    reached = local()
    batched()
    reached &= overhead()
    sys.exit(0 if reached else 1)
