"""Push a data set to the Hugging Face hub, with a card that says what it is, how it was made and how to make it again.

A data set there may have several splits of one task, each pushed by itself; the card lists all that are there.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

from statetrack import secrets
from statetrack.data.hub import SECONDS, HubName, client, said, understood
from statetrack.data.rows import DataRequest
from statetrack.data.write import Progress, beside, quiet, write
from statetrack.errors import BadInput, need, shortened
from statetrack.files import read_bounded
from statetrack.formatting import plural
from statetrack.tasks.groups import usual_name
from statetrack.tasks.groups.task import GroupTask

CARD = "README.md"
MOST_METADATA = 2**28  # bytes; of ten points the list of all permutations has 2**27
PLAIN = re.compile(r"[\w.,+\[\]=()' -]{1,200}")
LICENCES = re.compile(r"[\w.-]{1,60}")
LICENCE = "apache-2.0"
RULES = {
    "mathematical": "p_n ∘ ... ∘ p_1 (mathematical: p_1 acts first)",
    "published": "p_1 ∘ ... ∘ p_n (published: p_n acts first)",
}
COLUMNS = {
    "input_sequence": "the IDs of p_1 ... p_n, separated by spaces",
    "target": "the ID of the product of the whole row",
    "sequence_length": "n",
    "group_degree": "the number of points that the group acts on",
    "group_order": "the number of its elements",
    "group_type": "its family",
    "targets": "the answer after every input",
    "inputs": "the inputs, numbered from 0",
    "numbers": "the inputs, plain numbers",
    "answers": "the answer after every input; null where nothing is asked",
    "seed": "what makes the row again",
    "row": "its number",
}

Metadata = dict[str, Any]


def publish(
    request: DataRequest, repo: str, private: bool | None = None, overwrite: bool = False, licence: str = LICENCE,
    progress: Progress = quiet,
) -> str:  # fmt: skip
    """Push the rows as a split of the data set OWNER/NAME, which is made if it is not there; the address of it.

    A split that is there already is left as it is, and refused, unless `overwrite` says otherwise.
    """
    name = HubName.read(repo)
    if not LICENCES.fullmatch(licence):
        raise BadInput(f"licence {shortened(licence)} should be a name such as {LICENCE} or cc-by-4.0")
    if name.folder or name.revision:
        raise BadInput(f"{repo}: a data set is pushed to OWNER/NAME, without a folder or a revision")
    library = client(f"pushing to {name.repo}")
    errors: Any = need("huggingface_hub.errors", "hub", f"pushing to {name.repo}")
    unsent: Any = errors.HfHubHTTPError.__mro__[1]  # of the library that the hub's client sends with, whichever it is
    api = library.HfApi()
    try:
        with understood(name.repo, errors):
            others = _others(library, api, errors, name.repo, request, overwrite)
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / _file(request.split)
            write(request, out=data, progress=progress)
            own = _about(beside(data).read_text(encoding="utf-8"))
            text = card(request, [*others, own], name.repo, licence)
            with understood(name.repo, errors):
                api.create_repo(name.repo, repo_type="dataset", private=private, exist_ok=True)
            adds = [(CARD, text.encode()), *((f"data/{path.name}", path) for path in (data, beside(data)))]
            operations = [library.CommitOperationAdd(path_in_repo=place, path_or_fileobj=what) for place, what in adds]
            message = f"{request.task.name}, {request.split}: {plural(request.count, 'row')}"
            with understood(name.repo, errors):
                api.create_commit(name.repo, operations, commit_message=message, repo_type="dataset")
    except errors.HFValidationError as error:
        raise BadInput(f"{name.repo} is no name of the hub's: {said(error)}") from error
    except errors.HfHubHTTPError as error:
        raise _refused(name.repo, error) from error
    except (OSError, unsent) as error:
        raise BadInput(f"{name.repo} cannot be pushed: the hub is not reached ({said(error)})") from error
    return f"{api.endpoint}/datasets/{name.repo}"


def _file(split: str) -> str:
    return f"{split}-00000-of-00001.parquet"


def _others(library: Any, api: Any, errors: Any, repo: str, request: DataRequest, overwrite: bool) -> list[Metadata]:
    """What the splits that are there already say of themselves, but for the one that is to be pushed."""
    try:
        about = api.dataset_info(repo, timeout=SECONDS)
    except errors.RepositoryNotFoundError:
        return []
    there = sorted(file.rfilename for file in about.siblings or ())
    own = f"data/{_file(request.split)}"
    if own in there and not overwrite:
        raise BadInput(
            f"{repo} has a split {request.split} already; --overwrite (overwrite=True) puts this one in its place"
        )
    found = []
    for path in there:
        if path.endswith(".parquet.meta.json") and path != f"{own}.meta.json":
            local = library.hf_hub_download(repo, path, repo_type="dataset")
            found.append(_theirs(Path(local), f"{path} of {repo}"))
    for other in found:
        if other.get("task") != request.task.name:
            raise BadInput(f"{repo} holds rows of {other['task']}; a data set has those of one task")
        if request.group is not None and _labelled(other) != (request.convention, request.prefixes):
            raise BadInput(
                f"the split {other.get('split')} of {repo} has other labels: --convention and --prefixes as there"
            )
    return found


def _labelled(about: Metadata) -> tuple[str, bool]:
    return about.get("convention", ""), about.get("prefixes", False)


def _theirs(path: Path, called: str) -> Metadata:
    """Metadata that anybody may have pushed. What goes from it into the card and its commands is plain."""
    about = _about(read_bounded(path, MOST_METADATA).decode())
    words = ("task", "split", "length", "statetrack", *(["convention"] if "convention" in about else []))
    plain = all(isinstance(about.get(each), str) and PLAIN.fullmatch(about[each]) for each in words)
    if not plain or not all(type(about.get(each)) is int for each in ("count", "seed")):
        raise BadInput(f"{called} is not metadata that statetrack wrote, so that the card cannot say what is there")
    return about


def _about(text: str) -> Metadata:
    """A file of metadata, less its long parts."""
    return {key: value for key, value in json.loads(text).items() if key != "permutation_map"}


def _refused(repo: str, error: Any) -> BadInput:
    secrets.scrub_error(error)
    status = error.response.status_code
    if status in (401, 403, 404):
        return BadInput(
            f"{repo}: the hub does not let you push there ({status}); `hf auth login` takes a token that may write"
        )
    return BadInput(f"{repo} cannot be pushed: the hub says {status}")


# ---- the card --------------------------------------------------------------------------------------------------------


def card(request: DataRequest, splits: list[Metadata], repo: str, licence: str = LICENCE) -> str:
    """The page of the data set: for programs its licence and the files of its splits, for people what it holds."""
    parts = [_header(splits, licence), _what(request), _columns(request), _made(splits)]
    parts += [_convention(request, splits)] if request.group is not None else []
    return "\n\n".join([*parts, _use(request, repo), _licence(licence)]) + "\n"


def _header(splits: list[Metadata], licence: str) -> str:
    files = [f"  - split: {each['split']}\n    path: data/{_file(each['split'])}" for each in splits]
    return "\n".join(["---", f"license: {licence}", "tags:", "- state-tracking", "- statetrack", "configs:",
                      "- config_name: default", "  data_files:", *files, "---"])  # fmt: skip


def _what(request: DataRequest) -> str:
    task = request.task
    said = f"Rows of the task `{task.name}`: {task.title}, with exact answers, for training and testing state tracking."
    if isinstance(task, GroupTask):
        group = task.group_object
        told = (
            f"Each row is a sequence of elements of {usual_name(task.group)} (order {group.order}, degree"
            f" {group.degree}) and their product. An element's ID is its rank when all are sorted by their lists of"
            " images; the metadata beside each file give the list of every ID."
        )
    else:
        told = task.instruction
    return f"# {task.name}\n\n{said}\n\n{told}"


def _columns(request: DataRequest) -> str:
    import numpy as np

    names = request.columns(np.arange(1))
    return "\n".join(["| column | |", "|---|---|", *(f"| `{name}` | {COLUMNS[name]} |" for name in names)])


def _made(splits: list[Metadata]) -> str:
    lines = [f"| {each['split']} | {each['count']:,} | {each['length']} | {each['seed']} | {each['statetrack']} |"
             for each in splits]  # fmt: skip
    table = ["| split | rows | lengths | seed | statetrack |", "|---|---|---|---|---|", *lines]
    return "\n".join([
        "## How it was made", "", "Generated, not collected; the splits share no draw. The same command gives the same"
        " bytes:", "", "```", *(command(each) for each in splits), "```", "", *table,
    ])  # fmt: skip


def command(about: Metadata) -> str:
    """The command that makes a file with this metadata again.

    >>> command({"task": "fsm[k=2]", "split": "test", "seed": 1, "count": 9, "length": "3..9"})
    "statetrack data 'fsm[k=2]' --length 3..9 --count 9 --seed 1 --split test --out test.parquet"
    """
    words = ["statetrack", "data", about["task"], "--length", about["length"], "--count", str(about["count"])]
    words += ["--seed", str(about["seed"]), "--split", about["split"]]
    words += ["--convention", about["convention"]] if "convention" in about else []
    words += ["--prefixes"] if about.get("prefixes") else []
    return shlex.join([*words, "--out", f"{about['split']}.parquet"])


def _convention(request: DataRequest, splits: list[Metadata]) -> str:
    kept = dict.fromkeys(each.get("convention", "mathematical") for each in splits)
    said = "; ".join(f"{RULES[each]}" for each in kept)
    other = " The prompt of the permutation benchmark asks for p_n ∘ ... ∘ p_1." if "published" in kept else ""
    return f"## Convention\n\nFor a listed sequence p_1 ... p_n the labels are {said}.{other}"


def _use(request: DataRequest, repo: str) -> str:
    audit = f"\nstatetrack audit hub:{repo}     # checks every label" if request.group is not None else ""
    return f"""## Use\n\n```\npython -c 'import datasets; print(datasets.load_dataset("{repo}"))'{audit}\n```"""


def _licence(licence: str) -> str:
    what = "The rows follow from the task, the seed and the lengths alone; no other data are in them."
    return f"## Licence\n\n{licence}. {what}"
