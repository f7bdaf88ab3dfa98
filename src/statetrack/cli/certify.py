"""`statetrack certify` and `statetrack verify`: what a network does for ever, and whether a proof holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack import trust
from statetrack.cli.options import TrustCode, TrustedCode
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput, need
from statetrack.files import check_parent, write_whole
from statetrack.formatting import plural, short_names
from statetrack.progress import progress

if TYPE_CHECKING:
    from statetrack.certificates import Certificate
    from statetrack.results import TrainingRecord

PROOF = "proof"  # the ending of a proof beside the weights
MOST_BYTES = 2**28


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
    out: Annotated[Path | None, typer.Option(help="Of a file: where the proof goes; else beside the weights.")] = None,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Prove that a network is right after every word, of any length, or find a word that breaks it.

    It is broken by a word, proved as trained, or open. A proof is one file, KEY.proof beside the weights, which
    `statetrack verify` checks. Proofs are known of a tanh RNN, of E88 with gain and of its reflections, with one layer;
    any network with a state may be broken. The exit code is 0 whatever is found.

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
            return _of_folder(Path(what), tuple(key or ()), seconds, as_json)
        if weights is None:
            raise BadInput(f"{what} is not a folder of results; of a task, the weights are needed too")
        if key:
            raise BadInput("--key chooses cells of a folder; here the weights are those of a file")
        _of_file(what, weights, model, seconds, out, as_json)
    return 0


def _of_file(task: str, weights: Path, model: str | None, seconds: float, out: Path | None, as_json: bool) -> None:
    from statetrack.certificates import certify
    from statetrack.tasks import task as named_task
    from statetrack.training.existing import named_model, with_weights
    from statetrack.training.weight_file import check_not_nan, look_at

    the_task, file = named_task(task), look_at(weights)
    target = out or weights.with_suffix(f".{PROOF}")
    check_parent(target)
    network = with_weights(named_model(model, file), the_task, file, "cpu")
    check_not_nan(network, file.name)
    length = file.cell.length if file.cell else 16
    with progress("words spent", "certify", verb="certify") as move:
        found = certify(
            the_task, network, length=length, seconds=seconds, tick=lambda part: move(part, description=part)
        )
    _keep(found, target)
    if as_json:
        print_json(_plain(found))
    else:
        say(found.sentence)
        if found.proof:
            say(f"The proof: {target} (statetrack verify {target} {weights})")


def _of_folder(folder: Path, keys: tuple[str, ...], seconds: float, as_json: bool) -> int:
    from statetrack.certificates import certify
    from statetrack.results import Store, TrainingRecord
    from statetrack.tasks import trusted_task
    from statetrack.training.weights import load

    store = Store.existing(folder)
    records = [record for record in store.records() if isinstance(record, TrainingRecord)
               and (not keys or record.cell.key.startswith(keys))]  # fmt: skip
    if not records:
        raise BadInput(f"{folder} holds no trained cell" + (" with such a key" if keys else ""))
    found: list[tuple[TrainingRecord, Certificate]] = []
    left: list[str] = []
    with progress("bar count spent words", verb="certify") as move:
        for place, record in enumerate(records):
            move(f"{place} of {len(records)}", completed=place, total=len(records), description=str(record.cell))
            try:
                task, network = trusted_task(record.cell.task), load(store, record.cell)
                each = certify(task, network, length=record.cell.length, seed=record.cell.seed, seconds=seconds)
            except BadInput as error:
                left.append(f"{record.cell}: {error}")
                continue
            _keep(each, store.path(record.cell, PROOF))
            found.append((record, each))
    if as_json:
        print_json([{"cell": record.cell.to_dict()} | _plain(each) for record, each in found])
    else:
        names = short_names(name for record, _ in found for name in (record.cell.task, record.cell.subject))
        rows = [[names[record.cell.task], names[record.cell.subject], f"{record.cell.length:,}", str(record.cell.seed),
                 each.outcome, _by(each)] for record, each in found]  # fmt: skip
        print_table(["task", "model", "trained", "seed", "outcome", "by"], rows, groups=2)
        for line in left:
            say(f"left out: {line}")
    return 0


def _by(found: Certificate) -> str:
    if found.word:
        return f"{found.word.word} ({plural(found.word.tokens, 'token')})"
    if found.checked:
        return f"epsilon {found.checked.epsilon:.2g}, margin {found.checked.margin:.2g}"
    return f"every word of up to {found.covered} tokens is right"


def _keep(found: Certificate, target: Path) -> None:
    if found.proof is not None:
        write_whole(target, json.dumps(found.proof).encode())


def _plain(found: Certificate) -> dict[str, object]:
    return {
        "outcome": found.outcome, "sentence": found.sentence, "seconds": found.seconds, "covered": found.covered,
        "epsilon": found.checked.epsilon if found.checked else None,
        "margin": found.checked.margin if found.checked else None,
        "word": found.word.word if found.word else None,
    }  # fmt: skip


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
    for path in (proof, held):
        if not path.is_file():
            raise BadInput(f"there is no file {path}")
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path} has more than {MOST_BYTES:,} bytes, which no proof and no weights of one have")
    try:
        found = checked(proof, held)
    except Refused as error:
        say(f"{proof}: refused: {error}")
        return 1
    say(f"{proof} holds: these weights, run as {found.model}, answer {found.task} rightly after every word, "
          "of any length.")  # fmt: skip
    float32 = "which covers float32" if found.covers_float32 else "which does not cover float32"
    say(f"Steps may be off by {found.epsilon:g} in each number of the state, {float32} (off by at most "
          f"{found.float32:.1e}), and logits by {found.margin / 2:.3g}. {plural(found.regions, 'region')}, "
          f"{plural(found.states, 'state')} of the product with the task.")  # fmt: skip
    return 0
