"""`statetrack demo`: the question and its answer in small, on a laptop's CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statetrack.training import Result

LENGTH = 12  # all 2^12 strings are tried as well
SETTINGS = {"most_checks": 3, "polish": 50, "batch": 64}
MODELS = {
    "e88-gain-1l-small": "a state that corrects itself",
    "e88-published-1l-small": "a state that fades",
    "e88-1l-small": "a state that cannot flip",
    "mamba2-4l": "a linear state that only decays",
    "mlp": "no state",
}


def command() -> None:
    """Show what is tracked, then train five small models on parity and see which keep track, and how far.

    Example: statetrack demo
    """
    from statetrack.cli.train import watch
    from statetrack.errors import need

    need("torch", "train", "the demo")
    from statetrack.training import train

    show_rows()
    print(f"\nParity (txc), trained on {LENGTH} bits, tested on up to {16 * LENGTH}:\n")
    results = []
    for name in MODELS:
        with watch() as (report, tick):
            results.append(
                train("txc", name, length=LENGTH, seed=0, settings=SETTINGS, device="cpu", report=report, tick=tick)
            )
    show_table(results)


def show_rows() -> None:
    """A row of three tasks with its answers, worked out by the exact machines."""
    from statetrack import task
    from statetrack.cli.output import first_sentence

    print("What is tracked: a row of inputs, and the right answer after each of them.\n")
    for text in ("txc", "s5", "track_the_stat.median"):
        one = task(text)
        batch = one.sample(length=10, count=1, seed=0)
        print(f"{one.name}: {first_sentence(type(one).__doc__)}")
        for word, symbols, write in (("in ", batch.inputs, one.symbol_text), ("out", batch.targets, one.answer_text)):
            print(f"  {word} " + " ".join(f"{write(int(symbol)):>5}" for symbol in symbols[0]))


def show_table(results: list[Result]) -> None:
    from statetrack.cli.output import print_table
    from statetrack.cli.train import number

    lengths = list(results[0].record["length_generalisation"])
    rows = []
    for result in results:
        record = result.record
        beyond = [number(record["length_generalisation"][length].get("last_32_accuracy")) for length in lengths]
        rows.append(
            [result.cell.subject, MODELS[result.cell.subject], number(record["tail_accuracy"]), *beyond,
             f"{record['train_seconds']:.0f}"]
        )  # fmt: skip
    print_table(["model", "", f"at {LENGTH}", *(f"at {length}" for length in lengths), "seconds"], rows)
    floor = results[0].record["floor"]
    last = {r.cell.subject: r.record["length_generalisation"][lengths[-1]].get("last_32_accuracy") for r in results}
    kept = [name for name, accuracy in last.items() if accuracy is not None and accuracy >= 0.99]
    print(f"\nAccuracy at the end of a row; guessing scores {floor:.2f}.")
    print(f"Still right at {lengths[-1]}: {', '.join(kept) or 'none of them'}.")
    print("Next: statetrack list tasks, statetrack show s5, statetrack train --help")
