"""`st.load(folder)`: a folder of results as an object, with its cells, records, models, figures and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack import spec
from statetrack.display import Card, Measured
from statetrack.errors import BadInput, need, refusing_unknown, shortened, unknown
from statetrack.formatting import plural, short_names, without_hash
from statetrack.notebook import folder_card
from statetrack.own_code import is_address
from statetrack.results import Cell, Damage, Record, Status, Store, TrainingRecord, plans, status
from statetrack.results.diagnosis import Diagnosis, all_of, of_cell
from statetrack.results.long_table import COLUMNS, Row, long_rows, place, to_pandas
from statetrack.results.records import STATUSES
from statetrack.results.table import save_csv, save_parquet
from statetrack.tasks import trusted_task
from statetrack.trust import trusting
from statetrack.verdicts.measurements import tested

if TYPE_CHECKING:
    from statetrack.models import SequenceModel
    from statetrack.reports import Written
    from statetrack.training.result import Result, Results

MOST_VALUES = 4  # of each in which cells differ
MOST_NAMED = 8  # lengths or seeds in a message

Names = str | Iterable[str] | None
Numbers = int | Iterable[int] | None


@refusing_unknown
def load(folder: Path | str, *, trust: str | Iterable[str] = (), trust_code: bool = False) -> ResultsFolder:
    """Read a folder of results, as `train`, `sweep`, `ask` and the command line leave it.

    folder      the folder; it is read once, so load it again to see what came since
    trust       code of your own that its records name and that may be run to load a model: "file.py:Class"; what you
                have run before may be run anyway
    trust_code  whether all code that its records name may be run

    Gives a `ResultsFolder`: at a prompt a table, in a notebook with the figure of how far each model got.

        results = st.load("results")
        results.where(task="txc", length=64)          # some of it
        results.to_pandas()                           # a row for each network and thing that it was tested on
        results.where(task="txc", model="gru", length=64, seed=0).model()     # a trained model
        results.figure("txc-generalisation").save("figure.pdf")
        results.report()                              # the HTML page

    >>> from tempfile import mkdtemp
    >>> from statetrack.asking import ask
    >>> asked = ask("s3", solver="window-4", samples=2, length=10, out=(folder := mkdtemp()))
    >>> load(folder).where(task="s3_composition", seed=1).records
    (<AskedRecord s3_composition, window-4, length 10, seed 1: done, 4 right before the first error, ended: wrong>,)
    """
    path = Path(folder)
    store = Store.existing(path)
    records, damaged = [], []
    for _, entry in store.entries():
        if isinstance(entry, Damage):
            damaged.append(entry)
        else:
            records.append(entry)
    records.sort(key=lambda record: place(record.cell))
    trusted = (trust,) if isinstance(trust, str) else tuple(trust)
    return ResultsFolder(path, store, tuple(records), tuple(damaged), trusted, trust_code)


@dataclass(frozen=True, repr=False)
class ResultsFolder(Measured):
    """The records of a folder, or those of them that `where` left. `damaged` names files that cannot be read."""

    path: Path
    store: Store
    records: tuple[Record, ...]
    damaged: tuple[Damage, ...] = ()
    trusted: tuple[str, ...] = ()
    trust_code: bool = False
    whole: bool = True  # nothing was left out by `where`

    drawn_first = ("reach", "survival")

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def cells(self) -> list[Cell]:
        """What was measured, in the order of the records."""
        return [record.cell for record in self.records]

    @property
    def status(self) -> Status:
        """How the whole folder stands now: done, running, failed, missing."""
        return status(self.store)

    @refusing_unknown
    def where(
        self, *, task: Names = None, model: Names = None, length: Numbers = None, seed: Numbers = None,
        protocol: Names = None, status: Names = None,
    ) -> ResultsFolder:  # fmt: skip
        """The same with the records of these tasks, models, lengths (trained on, or asked), seeds, protocols and
        statuses alone: one of each or several. A name that the folder does not hold is refused with what is near.

            results.where(task=["txc", "rtc"], length=64, status="done")
        """
        left = list(self.records)
        named = {"task": (task, lambda cell: cell.task), "model": (model, lambda cell: cell.subject),
                 "protocol": (protocol, lambda cell: str(cell.protocol.get("name", "")))}  # fmt: skip
        for what, (wanted, of) in named.items():
            if wanted is not None:
                chosen = self._names(what, [wanted] if isinstance(wanted, str) else list(wanted), of)
                left = [record for record in left if of(record.cell) in chosen]
        for what, numbers in (("length", length), ("seed", seed)):
            if numbers is not None:
                some = self._numbers(what, list(numbers) if isinstance(numbers, Iterable) else [numbers])
                left = [record for record in left if getattr(record.cell, what) in some]
        if status is not None:
            kept = {status} if isinstance(status, str) else set(status)
            for name in kept - set(STATUSES):
                raise unknown("status", name, STATUSES)
            left = [record for record in left if record.status in kept]
        return replace(self, records=tuple(left), whole=self.whole and len(left) == len(self.records))

    def _names(self, what: str, wanted: list[str], of: Callable[[Cell], str]) -> set[str]:
        """The names in the folder that are meant; an own model is found by its address without the hash, too."""
        there = {of(cell) for cell in self.cells}
        short = short_names(there)
        found = set()
        for name in wanted:
            if not isinstance(name, str):
                raise BadInput(f"{what} {shortened(name)} should be a name")
            alike = {each for each in there
                     if name.lower() in (each.lower(), without_hash(each).lower(), short[each].lower())}  # fmt: skip
            alike = alike or {each for each in there if same_thing(what, name, each)}
            if not alike:
                raise unknown(f"{what} in {self.path}", name, map(without_hash, there))
            found |= alike
        return found

    def _numbers(self, what: str, wanted: list[int]) -> set[int]:
        there = sorted({getattr(cell, what) for cell in self.cells})
        for number in wanted:
            if number not in there:
                some = ", ".join(f"{each:,}" for each in there[:MOST_NAMED])
                more = ", ..." if len(there) > MOST_NAMED else ""
                raise BadInput(f"{self.path} holds no cell of {what} {number}; there are {some or 'none'}{more}")
        return set(wanted)

    def record(self, which: Cell | str | None = None) -> Record:
        """One record: by its cell, by the beginning of its key, or the only one that there is."""
        if isinstance(which, Cell):
            found = [record for record in self.records if record.cell == which]
        else:
            if not isinstance(which, str | None):
                raise BadInput(f"{shortened(which)} should be a cell, or the beginning of its key")
            found = [record for record in self.records if record.cell.key.startswith(which or "")]
        if len(found) == 1:
            return found[0]
        what = f"{which}" if which else "one record"
        count = plural(len(found), "cell") if found else "no cell"
        differ = f", which differ in {said}" if (said := differences([record.cell for record in found])) else ""
        raise BadInput(
            f"{self.path}: {what} is asked for, and {count} would fit{differ}; narrow it by where(...), or give a cell"
        )

    def result(self, which: Cell | str | None = None) -> Result:
        """The result of one training, as `st.train` gave it."""
        record = self.record(which)
        if not isinstance(record, TrainingRecord):
            raise BadInput(f"{record.cell} was not trained here")
        return replace(self, records=(record,)).results[0]

    @property
    def results(self) -> Results:
        """All that was trained, as `st.train_many` gives it; models are read from their weights when asked for. Code
        that only `trust` of this folder allows is run by `model`.
        """
        need("torch", "train", "a trained model")
        from statetrack.training.result import Result, Results

        trained = [record for record in self.records if isinstance(record, TrainingRecord)]
        return Results(Result(record, store=self.store, found=True) for record in trained)

    def model(self, which: Cell | str | None = None) -> SequenceModel:
        """The trained model of a cell, read from its weights."""
        with trusting(*self.trusted, everything=self.trust_code):
            return self.result(which).model

    def diagnosis(self, which: Cell | str | None = None) -> Diagnosis | None:
        """What `statetrack diagnose` found out about a cell; None where it was not looked into."""
        return of_cell(self.store, self.record(which).cell)

    @property
    def diagnoses(self) -> dict[Cell, Diagnosis]:
        """Those of all cells that were looked into."""
        found = {each.cell: each for _, each in all_of(self.store) if isinstance(each, Diagnosis)}
        return {cell: found[cell] for cell in self.cells if cell in found}

    @property
    def rows(self) -> list[Row]:
        """The long table as plain data (`results/long_table.py` says what its columns are)."""
        notes = {key: entry.note for key, entry in plans.entries(plans.saved(self.store)).items()}
        return long_rows(self.records, tested, notes)

    def to_pandas(self) -> Any:
        """The long table as a pandas.DataFrame."""
        return to_pandas(self.rows)

    def to_csv(self, path: Path | str) -> int:
        """Write the long table as CSV; how many rows."""
        return save_csv(self.rows, list(COLUMNS), Path(path))

    def to_parquet(self, path: Path | str) -> int:
        """Write the long table as Parquet; how many rows."""
        return save_parquet(self.rows, COLUMNS, Path(path))

    def report(
        self, out: Path | str | None = None, *, figures: Path | str | None = None, latex: Path | str | None = None,
        title: str | None = None,
    ) -> Written:  # fmt: skip
        """Write the page of the folder, as `st.report` does."""
        from statetrack.reports import report

        if not self.whole:
            raise BadInput(f"a report is of a whole folder: st.report({str(self.path)!r})")
        return report(self.path, out, figures=figures, latex=latex, title=title)

    def card(self) -> Card:
        return folder_card.card(self.path, self.records, self.damaged)

    def contents(self) -> tuple[tuple[Record, ...], list[Diagnosis]]:
        return self.records, list(self.diagnoses.values())


def same_thing(what: str, name: str, there: str) -> bool:
    """Whether a task or a model is called so as well: by another of a task's names, or with its options in another
    order. Code of one's own is not run for that.

    >>> same_thing("task", "S3", "s3_composition"), same_thing("model", "gru[hidden=8,dim=4]", "gru[dim=4,hidden=8]")
    (True, True)
    """
    if what == "protocol" or is_address(name):
        return False
    try:
        return trusted_task(name).name == there if what == "task" else spec.parse(name) == spec.parse(there)
    except BadInput:
        return False


def differences(cells: list[Cell]) -> str:
    """In what cells differ, with some of the values; of their protocols in which settings.

    >>> rules = {"name": "design", "batch": 4}
    >>> differences([Cell("txc", "gru", 8, seed, rules | {"batch": 4 + seed}) for seed in (0, 1)])
    'seed (0, 1), batch (4, 5)'
    """
    told = [{"task": cell.task, "model": cell.subject, "length": cell.length, "seed": cell.seed, "protocol": None}
            | cell.protocol | {"protocol": cell.protocol.get("name"), "name": None} for cell in cells]  # fmt: skip
    found = []
    for name in dict.fromkeys(name for each in told for name in each):
        values = list(dict.fromkeys(str(each.get(name, "-")) for each in told))
        if len(values) > 1:
            more = ", ..." if len(values) > MOST_VALUES else ""
            found.append(f"{name} ({', '.join(values[:MOST_VALUES])}{more})")
    return ", ".join(found)
