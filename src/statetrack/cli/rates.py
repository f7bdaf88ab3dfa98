"""`statetrack rates`: the learning rate of each model, from a pilot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.output import print_table, say
from statetrack.errors import BadInput
from statetrack.formatting import fixed, plural

if TYPE_CHECKING:
    from statetrack.results import Store
    from statetrack.sweeps.pilot import Pilot


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a pilot: a sweep that tried several rates.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Write the rates as a YAML file, for sweep --rates or to stand in a sweep's file."),
    ] = None,
) -> int:
    """Say which learning rate is best for each model of a pilot, and whether it lies inside the rates that were tried.

    A rate's score is its mean validation accuracy over tasks and seeds. Rates within .005 of the best are tied, and the
    smallest of them is chosen. The exit code is 1 where the best of a model is the smallest or the largest tried: the
    next rates are named then, and how to try them.

    Example: statetrack rates pilot --out rates.yaml
    """
    from statetrack.results import Store
    from statetrack.sweeps.pilot import pilots, written

    if out and out.suffix not in (".yaml", ".yml"):
        raise BadInput(f"--out {out} should end in .yaml")
    store = Store.existing(folder)
    found = pilots(store.records())
    if not found:
        raise BadInput(f"{folder} holds nothing that was trained")
    print_table(["model", "runs", "rates tried, with their scores", "best", "inside"], [_row(each) for each in found])
    for each in found:
        if each.left_out:
            say(f"{each.model}: not tried everywhere, and left out: {', '.join(map(number, each.left_out))}")
    if out:
        from statetrack.files import write_whole

        write_whole(out, written(found, str(folder)).encode())
        say(f"{out}: {plural(len(found), 'rate')}")
    return _extend([each for each in found if not each.inside], store)


def _row(each: Pilot) -> list[str]:
    tried = ", ".join(f"{number(rate)} {fixed(score, 4)}" for rate, score in each.scores.items())
    return [each.model, str(each.runs), tried, number(each.best), "yes" if each.inside else f"no: {each.edge}"]


def _extend(open_: Sequence[Pilot], store: Store) -> int:
    """How the grids of models go on whose best rate is at an edge."""
    from statetrack.results import plans

    if not open_:
        return 0
    names = [plan.name for plan in plans.saved(store)]
    say("\nthe best rate is at an edge; try the next ones, then look again:", file=sys.stderr)
    by_rates: dict[str, list[str]] = {}
    for each in open_:
        by_rates.setdefault(",".join(map(number, each.missing)), []).append(each.model)
    for rates, models in by_rates.items():
        subjects = " ".join(f'--subject "{model}"' if "[" in model else f"--subject {model}" for model in models)
        name = names[0] if len(names) == 1 else "NAME"
        say(f"statetrack sweep {name} {subjects} --rates {rates} --out {store.folder}", file=sys.stderr)
    return 1


def number(rate: float) -> str:
    """
    >>> number(1e-3), number(0.0005), number(0.03)
    ('1e-3', '5e-4', '3e-2')
    """
    mantissa, _, power = f"{rate:e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
