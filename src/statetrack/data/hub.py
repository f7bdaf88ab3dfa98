"""Data sets by their name on the Hugging Face hub: `hub:OWNER/NAME`, with `/FOLDER` behind it or `@REVISION`.

What is read are files of rows and metadata; code in a data set is neither fetched nor run. They stay in the cache of
huggingface_hub, from where they are taken when the hub is not reached. `HF_ENDPOINT` names another hub, which may
answer anything, and repeat the token that it was sent.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Self

from statetrack import secrets
from statetrack.data.write import METADATA
from statetrack.errors import BadInput, need, one_line

PREFIX = "hub:"
ENDINGS = (".jsonl", ".parquet", ".arrow", ".json")
ODD = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)  # of answers that are none
SECONDS = 10.0  # that the hub has for its first answer
NAMED = re.compile(r"(?P<repo>[^/@]+/[^/@]+)(?:/(?P<folder>[^@]+?))?/?(?:@(?P<revision>.+))?")


@dataclass(frozen=True)
class HubName:
    """A data set on the hub, or a folder of one.

    >>> HubName.read("hub:BeeGass/Group-Theory-Collection/data/s5_data@main")
    HubName(repo='BeeGass/Group-Theory-Collection', folder='data/s5_data', revision='main')
    """

    repo: str
    folder: str = ""
    revision: str | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        match = NAMED.fullmatch(text.removeprefix(PREFIX))
        if match is None:
            raise BadInput(
                f"{text} should name a data set of the hub, as in {PREFIX}OWNER/NAME or {PREFIX}OWNER/NAME/FOLDER"
            )
        return cls(match["repo"], match["folder"] or "", match["revision"])


def on_hub(path: Path | str) -> bool:
    """Whether a data set is given by its name on the hub."""
    return str(path).startswith(PREFIX)


def located(path: Path | str, stems: Sequence[str] = ()) -> Path:
    """Where the files of a data set lie: the path itself, or the folder to which they were fetched from the hub.

    Of a large collection only files and folders of one of the names `stems` are fetched, where there are any.
    """
    if not on_hub(path):
        return Path(path)
    name = HubName.read(str(path))
    library = client(f"reading {path}")
    place = _fetched(library, name, str(path), stems) / name.folder
    if not place.exists():
        raise BadInput(f"{path} cannot be read: {name.repo} has no {name.folder} with data in it")
    return place


def client(purpose: str) -> Any:
    """The hub's client; from now on its token is shown nowhere."""
    library = need("huggingface_hub", "hub", purpose)
    secrets.guard()
    secrets.remember(library.get_token())
    return library


def said(error: BaseException) -> str:
    """What went wrong, in one line; the token is kept out of it, and of the traceback behind it."""
    secrets.scrub_error(error)
    return secrets.scrub(one_line(error))


@contextmanager
def understood(what: str, errors: Any) -> Iterator[None]:
    """Refuse in one line what a hub answers that is none of the hub's answers."""
    try:
        yield
    except (BadInput, OSError, errors.HFValidationError):
        raise
    except ODD as error:
        raise BadInput(f"{what}: what the hub answers cannot be read ({said(error)})") from error


def _fetched(library: Any, name: HubName, text: str, stems: Sequence[str]) -> Path:
    errors: Any = need("huggingface_hub.errors", "hub", f"reading {text}")
    unsent: Any = errors.HfHubHTTPError.__mro__[1]  # of the library that the hub's client sends with, whichever it is
    wanted, offline = _patterns(name.folder, stems), ""
    try:
        with understood(text, errors):
            info = library.HfApi().dataset_info(name.repo, revision=name.revision, timeout=SECONDS)
            if not any(fnmatch(file.rfilename, pattern) for file in info.siblings or () for pattern in wanted):
                wanted = _patterns(name.folder, ())
    except errors.HFValidationError as error:
        raise BadInput(f"{text} is no name of the hub's: {said(error)}") from error
    except errors.RepositoryNotFoundError as error:
        secrets.scrub_error(error)
        raise BadInput(f"{text}: the hub has no data set of that name, or does not show it to you") from error
    except errors.RevisionNotFoundError as error:
        secrets.scrub_error(error)
        raise BadInput(f"{text}: {name.repo} has no revision {name.revision}") from error
    except (OSError, unsent) as error:
        offline = said(error)
    try:
        with understood(text, errors):
            where = library.snapshot_download(
                name.repo,
                repo_type="dataset",
                revision=name.revision,
                allow_patterns=wanted,
                local_files_only=bool(offline),
            )
    except (OSError, unsent) as error:
        why = said(error)
        raise BadInput(f"{text} cannot be read: the hub is not reached ({offline or why})") from error
    return Path(where)


def _patterns(folder: str, stems: Sequence[str]) -> list[str]:
    """What is fetched: rows and metadata, in one folder or under some names, with the metadata above them."""
    inside = f"{glob.escape(folder)}/" if folder else ""
    if stems:
        places = [
            f"{inside}{deep}{glob.escape(stem)}{below}" for stem in stems for deep in ("", "*/") for below in ("", "/*")
        ]
        return [f"{place}{ending}" for place in places for ending in ENDINGS]
    above = str(PurePosixPath(folder).parent / METADATA)
    one = [inside.rstrip("/"), f"{inside.rstrip('/')}.meta.json", glob.escape(above)] if folder else []
    return [*(f"{inside}*{ending}" for ending in ENDINGS), *one]
