"""A plan keeps the rules of verdicts that were in force when it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from statetrack.results import Cell, Store, merge, plans, status
from statetrack.results.folder_status import ORDER
from statetrack.sweeps import sweep_of

SWEEP = sweep_of("parity", [Cell("txc", "gru", 8, 0, {"name": "curriculum"})])


def path(store: Store) -> Path:
    return store.hidden / "plans" / "parity.json"


def test_a_plan_is_made_under_the_rules_in_force(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plans.save(store, SWEEP)
    assert [sweep.rules for sweep in plans.saved(store)] == [plans.RULES]
    assert plans.oldest_rules(store) == plans.RULES == 2


def test_a_plan_that_says_nothing_is_of_the_first_rules(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plans.save(store, SWEEP)
    told = json.loads(path(store).read_text())
    del told["rules"]
    path(store).write_text(json.dumps(told))
    assert plans.oldest_rules(store) == plans.FIRST_RULES == 1


def test_a_sweep_that_is_taken_up_again_keeps_its_rules(tmp_path: Path) -> None:
    """Its cells were seen under those: later rules may have been written with them in view."""
    store = Store(tmp_path)
    plans.save(store, replace(SWEEP, rules=1))
    plans.save(store, SWEEP)
    assert plans.oldest_rules(store) == 1
    path(store).write_text("{")
    plans.save(store, SWEEP)
    assert plans.oldest_rules(store) == 1  # what the damaged one said is not known


def test_a_folder_without_a_plan_is_judged_by_the_rules_in_force(tmp_path: Path) -> None:
    assert plans.oldest_rules(Store(tmp_path)) == plans.RULES


WHOLE = sweep_of("parity", [Cell("txc", name, 8, 0, {"name": "curriculum"}) for name in ("gru", "lstm", "mlp", "rnn")])


def planned(store: Store) -> dict[str, int]:
    return {sweep.title: len(sweep.entries) for sweep in plans.saved(store)}


def test_parts_that_run_into_one_folder_do_not_replace_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plans.save(store, WHOLE.part(1, 3))
    assert planned(store) == {"parity (part 1/3)": 2}
    plans.save(store, WHOLE.part(3, 3))
    assert planned(store) == {"parity (parts 1/3, 3/3)": 3}
    plans.save(store, WHOLE.part(1, 3))  # again
    assert planned(store) == {"parity (parts 1/3, 3/3)": 3}
    assert status(store).sweeps["parity (parts 1/3, 3/3)"]["missing"] == 3
    plans.save(store, replace(WHOLE.part(2, 3), rules=1))
    assert planned(store) == {"parity": 4}  # all parts are the whole
    assert plans.oldest_rules(store) == 1
    plans.save(store, replace(WHOLE, entries=WHOLE.entries[:3]))  # edited, and run as a whole
    assert planned(store) == {"parity": 3}
    assert plans.oldest_rules(store) == 1


def test_the_plans_of_parts_are_together_after_a_merge(tmp_path: Path) -> None:
    one, two, both = (Store(tmp_path / name) for name in ("one", "two", "both"))
    plans.save(one, WHOLE.part(1, 2))
    plans.save(two, WHOLE.part(2, 2))
    merge([one.folder, two.folder], both.folder)
    assert planned(both) == {"parity": 4}
    assert status(both).sweeps == {"parity": dict.fromkeys(ORDER, 0) | {"missing": 4}}


def test_plans_of_one_name_with_other_cells_are_united_by_a_merge(tmp_path: Path) -> None:
    """Before 0.4.0 the plan of a part had the name of the whole."""
    one, two = (Store(tmp_path / name) for name in ("one", "two"))
    plans.save(one, replace(WHOLE.part(1, 2), parts=(), rules=1))
    plans.save(two, replace(WHOLE.part(2, 2), parts=()))
    before = path(two).read_bytes()
    merge([two.folder], two.folder)
    assert path(two).read_bytes() == before
    merge([one.folder], two.folder)
    assert planned(two) == {"parity": 4}
    assert plans.oldest_rules(two) == 1
    joined = path(two).read_bytes()
    merge([one.folder], two.folder)
    assert path(two).read_bytes() == joined
    path(two).write_text("{")  # a damaged one makes room
    merge([one.folder], two.folder)
    assert planned(two) == {"parity": 2}


def test_a_part_that_says_nonsense_is_the_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plans.save(store, WHOLE)
    told = json.loads(path(store).read_text())
    path(store).write_text(json.dumps(told | {"parts": ["<b>/2", "0/0"]}))
    assert planned(store) == {}  # its checksum is wrong
    del told["sha256"]
    path(store).write_text(json.dumps(told | {"parts": ["<b>/2", "0/0"]}))
    assert planned(store) == {"parity": 4}
