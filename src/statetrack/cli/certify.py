"""`statetrack certify` and `statetrack verify`: what a network does for ever, and whether a proof holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack import trust
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TrustCode, TrustedCode
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput, need
from statetrack.files import check_parent
from statetrack.formatting import plural, short_names
from statetrack.progress import progress
from statetrack.results import proofs
from statetrack.results.evaluations import OPEN

if TYPE_CHECKING:
    from statetrack.certificates import Certificate
    from statetrack.results import TrainingRecord

MOST_KEYS = 8  # in a line
MOST_WEIGHTS = 2**28  # bytes of those that a proof is checked for


def command(
    what: Annotated[str, typer.Argument(metavar="DIR | TASK", help="A folder of cells with weights; or a task.")],
    weights: Annotated[
        Path | None, typer.Argument(help="After a task: a safetensors file with a model's tensors by their names.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Whose weights the file holds, where it does not say so: NAME[option=value].")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Of a folder only the cell whose key begins with this; may be repeated.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="For the search for a proof, for each network.")] = 60.0,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune-readout", help="Where the network is not proved, prove a copy that reads less of its state."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Of a file: where the proof goes; else beside the weights.")] = None,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Prove that a network is right after every word, of any length, or find a word that breaks it.

    It is broken by a word, proved as trained, or open. A proof is one file, KEY.proof beside the weights, which
    `statetrack verify` checks. Of a folder, what is found out about each trained cell is added to its record, and what
    is known of its weights already is not searched again, unless it stayed open in fewer --seconds; so a run that was
    killed goes on. Proofs are known of a tanh RNN, a GRU, an LSTM, of E88 with gain and of its reflections, with one
    layer; any other network with a state, one of your own too, is broken or stays open. --prune-readout: where the
    network itself is not proved, the read-out of what resists is set to zero in a copy, KEY.pruned.safetensors, and
    that copy is proved; it is always called pruned. The exit code is 0 whatever is found, and 1 if a cell could not be
    looked at.

    Example: statetrack certify results

    Example: statetrack certify txc weights.safetensors --model "tanh-rnn[hidden=32]" --out parity.proof
    """
    need("torch", "train", "certify")
    if not 0 < seconds <= 86_400:
        raise BadInput(f"--seconds {seconds:g} should lie in 0..86400")
    with trust.trusting(*(trusted or ()), everything=trust_code):
        if weights is None and Path(what).is_dir():
            if model is not None or out is not None:
                raise BadInput(f"--model and --out are for weights in a file; the cells of {what} say it themselves")
            return _of_folder(Path(what), tuple(key or ()), seconds, prune, as_json)
        if weights is None:
            raise BadInput(f"{what} is not a folder of results; of a task, the weights are needed too")
        if key:
            raise BadInput("--key chooses cells of a folder; here the weights are those of a file")
        _of_file(what, weights, model, seconds, prune, out, as_json)
    return 0


def _of_file(
    task: str, weights: Path, model: str | None, seconds: float, prune: bool, out: Path | None, as_json: bool
) -> None:
    from statetrack.certificates import certify
    from statetrack.tasks import task as named_task
    from statetrack.training.checkpoint import save_weights
    from statetrack.training.existing import named_model, with_weights
    from statetrack.training.threads import threads_for
    from statetrack.training.weight_file import check_not_nan, look_at

    the_task, file = named_task(task), look_at(weights)
    target = out or weights.with_suffix(f".{proofs.PROOF}")
    check_parent(target)
    network = with_weights(named_model(model, file), the_task, file, "cpu")
    check_not_nan(network, file.name)
    length = file.cell.length if file.cell else 16
    with threads_for(network), progress("words spent", "certify", verb="certify") as move:
        found = certify(
            the_task, network, length=length, seconds=seconds, prune=prune,
            tick=lambda part: move(part, description=part),
        )  # fmt: skip
    held = weights
    if found.pruned is not None:
        target = out or weights.with_suffix(f".{proofs.PRUNED_PROOF}")
        held = target.with_suffix(".safetensors")
        if held == weights:
            raise BadInput(f"--out {target} would write the pruned network over {weights}")
        save_weights(held, found.pruned, {"pruned": True, "task": the_task.name, "model": network.text})
    if found.proof is not None:
        proofs.write(target, found.proof)
    if as_json:
        print_json(_plain(found))
    else:
        say(found.sentence)
        if found.proof:
            say(f"The proof: {target} (statetrack verify {target} {held})")


def _of_folder(folder: Path, keys: tuple[str, ...], seconds: float, prune: bool, as_json: bool) -> int:
    from statetrack.certificates import certify_folder
    from statetrack.results.diagnosis import HARMLESS
    from statetrack.training.folder import FolderTally

    last = FolderTally()
    with progress("bar count spent words", verb="certify") as move:

        def show(tally: FolderTally) -> None:
            nonlocal last
            last, now = tally, f"{tally.now}: {tally.part}"
            move(f"{tally.done} of {tally.total}, {now}", completed=tally.done, total=tally.total, description=now)

        def kept() -> Interrupted:
            if not last.done:
                return Interrupted("no cell was certified yet", goes_on=False)
            return Interrupted(f"{last.done} of {plural(last.total, 'cell')} are certified and kept in {folder}")

        with telling(kept):
            tally = certify_folder(folder, keys, seconds, show, prune=prune)
    for left in tally.left_out:
        say(f"left out: {left.what}: {left.why}", file=sys.stderr)
    if not tally.records:
        raise BadInput(f"no cell of {folder} could be certified" if tally.left_out else f"{folder} holds no cells")
    if as_json:
        print_json([_told(record) for record in tally.records])
    else:
        _print(tally.records)
        say(f"\n{plural(tally.grown, 'cell')} of {folder} certified now, {len(tally.records) - tally.grown:,} before; "
              f"{len(tally.left_out):,} left out")  # fmt: skip
    return 1 if any(left.code not in HARMLESS for left in tally.left_out) else 0


def _print(records: Sequence[TrainingRecord]) -> None:
    names = short_names(name for record in records for name in (record.cell.task, record.cell.subject))
    rows = [[names[record.cell.task], names[record.cell.subject], f"{record.cell.length:,}", str(record.cell.seed),
             record.standing, record.shown_by] for record in records]  # fmt: skip
    print_table(["task", "model", "trained", "seed", "for ever", "by"], rows, groups=2)
    for line in why_open(records):
        say(line)


def why_open(records: Sequence[TrainingRecord]) -> list[str]:
    """Why the search of each network that stays open has ended, once for those that it ended for alike."""
    ended: dict[str, list[str]] = {}
    for record in records:
        if record.standing == OPEN and record.for_ever is not None:
            ended.setdefault(record.for_ever.why, []).append(record.cell.key[:8])
    return [f"open: {', '.join(keys[:MOST_KEYS])}{', ...' if len(keys) > MOST_KEYS else ''}: {why}"
            for why, keys in ended.items()]  # fmt: skip


def _plain(found: Certificate) -> dict[str, object]:
    return {
        "outcome": found.outcome, "sentence": found.sentence, "seconds": found.seconds, "covered": found.covered,
        "epsilon": found.checked.epsilon if found.checked else None,
        "margin": found.checked.margin if found.checked else None,
        "word": found.word.word if found.word else None,
    }  # fmt: skip


def _told(record: TrainingRecord) -> dict[str, object]:
    found, word = record.for_ever, record.broken
    numbers = ("outcome", "seconds", "covered", "epsilon", "margin", "float32", "regions", "proof", "why")
    told = {name: getattr(found, name) for name in numbers} if found else {}
    return {"cell": record.cell.to_dict(), "standing": record.standing, "sentence": record.said_for_ever, **told,
            "word": word.word if word else None}  # fmt: skip


def verify(
    proof: Annotated[Path, typer.Argument(help="A file that certify wrote.")],
    weights: Annotated[
        Path | None, typer.Argument(help="The weights that it is about; else those of the same name beside it.")
    ] = None,
) -> int:
    """Check a proof, with numbers that are rounded outward, trusting nothing of what made it.

    The exit code is 0 for a proof that holds and 1 for one that does not.

    Example: statetrack verify results/3f0c9a1b.proof
    """
    from statetrack.certificates.checker import Refused
    from statetrack.certificates.checker import verify as checked

    held = weights or (proof.with_suffix(".safetensors") if proof.is_file() else proof)
    for path, most in ((proof, proofs.MOST_PROOF), (held, MOST_WEIGHTS)):
        if not path.is_file():
            raise BadInput(f"there is no file {path}")
        if path.stat().st_size > most:
            raise BadInput(f"{path} has more than {most:,} bytes, which no proof and no weights of one have")
    try:
        found = checked(proof, held)
    except Refused as error:
        say(f"{proof}: refused: {error}")
        return 1
    called = f" (the proof calls them {found.model})" if found.model else ""
    say(f"{proof} holds: these weights, run as {found.network}{called}, answer {found.task} rightly after every word, "
          "of any length.")  # fmt: skip
    float32 = "which covers float32" if found.covers_float32 else "which does not cover float32"
    say(f"Steps may be off by {found.epsilon:g} in each number of the state, {float32} (off by at most "
          f"{found.float32:.1e}), and logits by {found.margin / 2:.3g}. {plural(found.regions, 'region')}, "
          f"{plural(found.states, 'state')} of the product with the task.")  # fmt: skip
    return 0
