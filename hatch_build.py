"""At build time: the parts of the package's metadata that depend on its version and on where it is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

TASK_FILES = "statetrack-lm-eval"  # the distribution that puts our tasks beside those of lm-evaluation-harness
FOLDER, EXTRA = "lm_eval_tasks", "lm-eval"  # where a clone has it, and which extra brings it
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^]]*)\]\((?![a-z]+:|#)(?P<path>[^)]+)\)")


def with_whole_links(readme: str, repository: str, version: str) -> str:
    """A page for an index, which has only this page: links and pictures lead to the repository at this version.

    >>> with_whole_links("[a](docs/a.md), ![b](b.png), [c](#c)", "https://github.com/o/r", "1.0")
    '[a](https://github.com/o/r/blob/v1.0/docs/a.md), ![b](https://github.com/o/r/raw/v1.0/b.png), [c](#c)'
    """
    return LINK.sub(
        lambda link: "{picture}[{text}]({0}/{1}/v{2}/{path})".format(
            repository, "raw" if link["picture"] else "blob", version, **link.groupdict()
        ),
        readme,
    )


class Metadata(MetadataHookInterface):
    """The long description, and the extras of pyproject.toml with the task files for lm-evaluation-harness."""

    def update(self, metadata: dict[str, Any]) -> None:
        root, version = Path(self.root), metadata["version"]
        text = with_whole_links((root / "README.md").read_text("utf-8"), metadata["urls"]["Repository"], version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        extras = {name: list(needed) for name, needed in self.config["extras"].items()}
        here = root / FOLDER
        extras[EXTRA].append(f"{TASK_FILES} @ {here.as_uri()}" if here.is_dir() else f"{TASK_FILES}=={version}")
        metadata["optional-dependencies"] = extras


class SourceArchive(BuildHookInterface):
    """A source archive goes elsewhere, so it asks for the task files by name and not by a path of this machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        by_name = f"{TASK_FILES}=={self.metadata.version}"
        for needed in self.metadata.core.optional_dependencies.values():
            needed[:] = [by_name if each.startswith(TASK_FILES) else each for each in needed]
