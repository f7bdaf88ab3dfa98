"""`statetrack pack` and `statetrack unpack`: a folder of cells as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli.merge import report
from statetrack.formatting import plural


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    archive: Annotated[Path, typer.Argument(help="The file to write: .tar, .tar.gz or .tgz")],
    weights: Annotated[bool, typer.Option("--weights", help="The trained weights as well.")] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Checkpoints of cells under way as well, to go on elsewhere.")
    ] = False,
    diagnoses: Annotated[
        bool, typer.Option("--diagnoses/--no-diagnoses", help="What diagnose found out about the cells.")
    ] = True,
) -> None:
    """Pack the records and diagnoses of a folder into one file, the same bytes for the same cells.

    Example: statetrack pack demo-results demo.tar.gz
    """
    from statetrack.results import pack

    print(f"{archive}: {plural(pack(folder, archive, weights, checkpoints, diagnoses), 'cell')}")


def unpack(
    archive: Annotated[Path, typer.Argument(help="A file that pack wrote.")],
    folder: Annotated[Path, typer.Argument(help="The folder that gets the cells; it may hold some already.")],
) -> int:
    """Put the cells of a packed file into a folder.

    Example: statetrack unpack demo.tar.gz demo-results
    """
    from statetrack.results import unpack

    return report(unpack(archive, folder), folder)
