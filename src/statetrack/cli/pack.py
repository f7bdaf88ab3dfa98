"""`statetrack pack` and `statetrack unpack`: a folder of cells as one file, or as parts of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli.merge import report
from statetrack.cli.output import say
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
    part_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Several files, each below this size: 15M, 500k, 1G.")
    ] = None,
) -> None:
    """Pack the records and diagnoses of a folder into one file, the same bytes for the same cells.

    With --part-size into as many as it takes, for mail and other small doors: demo.1of3.tar.gz, demo.2of3.tar.gz, ...

    Example: statetrack pack demo-results demo.tar.gz --weights --part-size 15M
    """
    from statetrack.results import pack, pack_parts
    from statetrack.results.parts import size_in_bytes

    if part_size is None:
        say(f"{archive}: {plural(pack(folder, archive, weights, checkpoints, diagnoses), 'cell')}")
        return
    cells, parts = pack_parts(folder, archive, size_in_bytes(part_size), weights, checkpoints, diagnoses)
    for part in parts:
        say(f"{part}: {part.stat().st_size:,} bytes")
    say(f"{plural(cells, 'cell')} in {plural(len(parts), 'part')}")


def unpack(
    archives: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="A file that pack wrote, or parts: of one the others are found beside."),
    ],
    folder: Annotated[Path, typer.Argument(help="The folder that gets the cells; it may hold some already.")],
) -> int:
    """Put the cells of a packed file, or of parts in any order, into a folder.

    Example: statetrack unpack demo.tar.gz demo-results
    """
    from statetrack.results import unpack

    return report(unpack(archives, folder), folder)
