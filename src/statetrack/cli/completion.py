"""What a shell completes, once `statetrack --install-completion` has turned it on: verbs and options by themselves, and
the names of tasks, models, groups, sweeps and solvers, from catalogues that are read without torch.

Where nothing here matches, the shell completes file names, as for a task or a model of one's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from typer.core import TyperGroup

VARIABLE = "_STATETRACK_COMPLETE"  # by which a shell asks
SHOW = "--show-completion"
OPTIONS = {"--install-completion", SHOW}


class Verbs(TyperGroup):
    """The command. Of the two options for completion the help shows the one that people need."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        for param in params:
            param.hidden = param.hidden or SHOW in param.opts
        return params


def answer(app: Any) -> int:
    """Tell the shell how a line may go on, and nothing else: a warning would end up in the middle of what is typed."""
    try:
        with redirect_stderr(StringIO()):
            app([], prog_name="statetrack", standalone_mode=False)
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """
    >>> beginning(["s5_composition", "txc", "s6"], "s")
    ['s5_composition', 's6']
    """
    return [name for name in names if name.startswith(incomplete)]


def tasks(incomplete: str) -> list[str]:
    from statetrack.tasks.catalogue import names

    return beginning(names(), incomplete)


def models(incomplete: str) -> list[str]:
    from statetrack.models.catalogue import entries

    return beginning(entries(), incomplete)


def groups(incomplete: str) -> list[str]:
    from statetrack.tasks.groups import catalogue

    return beginning(catalogue(), incomplete)


def sizes(incomplete: str) -> list[str]:
    return beginning(["parameters=100k", "parameters=1m"], incomplete)


def sweeps(incomplete: str) -> list[str]:
    from statetrack.sweeps.document import shipped

    return beginning(shipped(), incomplete)


def solvers(incomplete: str) -> list[str]:
    from statetrack.asking import SOLVERS

    return beginning(SOLVERS, incomplete)
