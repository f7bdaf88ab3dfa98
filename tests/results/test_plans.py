"""A plan keeps the rules of verdicts that were in force when it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from statetrack.results import Cell, Store, plans
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
