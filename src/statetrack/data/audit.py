"""Audit a data set in the published schema: what its labels follow, which group it is, and what else does not fit.

audit(Path("q8"))   .facts: everything counted   .findings: what is wrong, one line each   .warnings: what to beware of
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from statetrack.data.counts import Mistakes, SplitCounts, exact_buckets, nearest_buckets
from statetrack.data.identify import StatedGroup, claim, generated, invariants, same_as
from statetrack.data.maps import KEY, PermutationMap
from statetrack.data.read import DataSet, find, recorded_sha256
from statetrack.data.rows import CONVENTIONS
from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.tasks.groups import family, group, usual_name

RULES = {"mathematical": "p_n ∘ ... ∘ p_1", "published": "p_1 ∘ ... ∘ p_n"}


@dataclass(frozen=True)
class Audit:
    """Everything that was counted, ready for JSON; what is wrong, and what is as it says but would be scored wrongly
    if nobody knew, one line each.
    """

    facts: dict[str, Any]
    findings: list[str]
    warnings: list[str]

    @property
    def clean(self) -> bool:
        return not self.findings


def audit(path: Path, group_name: str | None = None) -> Audit:
    """Read all of a data set and say what is in it; `group_name` overrules what its files say it is."""
    data = find(Path(path))
    claimed = claim(data, group_name)
    id_map = _map(data, claimed)
    tallies = _count(data, id_map, claimed)
    sections = [
        ("group", _group(data, claimed, id_map)),
        ("labels", _labels(data, tallies)),
        ("ids", _ids(id_map, tallies)),
        ("columns", _columns(tallies)),
        ("lengths", (_lengths(tallies), [])),
        ("duplicates", _duplicates(tallies)),
        ("files", _files(data)),
    ]
    facts: dict[str, Any] = {"path": str(path), "rows": {split: tally.rows for split, tally in tallies.items()}}
    findings: list[str] = []
    for name, (counted, wrong) in sections:
        facts[name] = counted
        findings += wrong
    warnings = _against_the_prompt(facts["labels"], _rows(tallies))
    return Audit({**facts, "findings": findings, "warnings": warnings}, findings, warnings)


Section = tuple[dict[str, Any], list[str]]


def _map(data: DataSet, claimed: StatedGroup | None) -> PermutationMap:
    if KEY in data.metadata:
        return PermutationMap.read(data.metadata[KEY], str(data.metadata_path))
    if claimed is None:
        raise BadInput(
            f"{data.path} has neither a permutation map nor a group's name; with --group NAME our own IDs are used"
        )
    return PermutationMap.of_group(group(claimed.name))


def _count(data: DataSet, id_map: PermutationMap, claimed: StatedGroup | None) -> dict[str, SplitCounts]:
    expected: dict[str, Any] = {"group_order": id_map.distinct, "group_degree": id_map.images.shape[1]}
    if claimed:
        expected["group_type"] = family(claimed.name)
    tallies = {}
    for split in data.splits:
        tallies[split] = SplitCounts()
        for rows in data.rows(split):
            tallies[split].add(rows, id_map, expected)
    if not any(tally.rows for tally in tallies.values()):
        raise BadInput(f"{data.path} holds no rows")
    return tallies


def _group(data: DataSet, claimed: StatedGroup | None, id_map: PermutationMap) -> Section:
    facts: dict[str, Any] = {
        "claimed": claimed.name if claimed else None,
        "claimed_in": claimed.source if claimed else None,
        "map": str(data.metadata_path) if KEY in data.metadata else None,
        "map_entries": len(id_map.ids),
    }
    if KEY not in data.metadata:  # our own IDs were used: nothing in the data says what they stand for
        return facts, []
    real = generated(id_map)
    names = same_as(real)
    facts |= {"degree": real.degree, **invariants(real), "same_as": names}
    wrong = []
    if id_map.distinct < len(id_map.ids):
        wrong.append(
            f"the permutation map gives {len(id_map.ids) - id_map.distinct} permutations under more than one ID"
        )
    if id_map.distinct != real.order:
        wrong.append(f"the permutation map is not a group: its {id_map.distinct} permutations generate {real.order}")
    if claimed:
        own = group(claimed.name)
        facts["is_claimed"] = invariants(own) == invariants(real)
        if not facts["is_claimed"]:
            known_as = f", the same as {' and '.join(names)}" if names else ""
            wrong.append(
                f"the group is not {claimed.name} ({usual_name(claimed.name)}, order {own.order}): "
                f"its permutations generate a group of order {real.order}{known_as}"
            )
    return facts, wrong


def _labels(data: DataSet, tallies: dict[str, SplitCounts]) -> Section:
    counts = {
        "mathematical": sum(tally.mathematical for tally in tallies.values()),
        "published": sum(tally.published for tally in tallies.values()),
        "both": sum(tally.both for tally in tallies.values()),
        "neither": sum(tally.neither.count for tally in tallies.values()),
        "not_checked": sum(tally.outside.count for tally in tallies.values()),
    }
    said = data.metadata.get("convention")
    declared = said if said in CONVENTIONS else "mathematical"
    most = max(CONVENTIONS, key=lambda name: counts[name])
    followed = most if counts[most] else ("either" if counts["both"] else None)
    wrong = _reversed_labels(followed, declared, counts, _rows(tallies)) if followed in CONVENTIONS else []
    neither = {split: tally.neither for split, tally in tallies.items()}
    wrong += _listed(neither, "a label that is right in neither convention", "target")
    return {"declared": said, "follows": followed, **counts}, wrong


def _reversed_labels(followed: str, declared: str, counts: dict[str, int], rows: int) -> list[str]:
    wrong = []
    if followed != declared:
        right, expected = counts[followed] + counts["both"], counts[declared] + counts["both"]
        wrong.append(
            f"labels follow {RULES[followed]} ({followed}): {right} of {plural(rows, 'row')} match it, "
            f"{expected} match {RULES[declared]} ({declared})"
        )
    other = CONVENTIONS[1 - CONVENTIONS.index(followed)]
    if counts[other]:
        wrong.append(f"labels of {plural(counts[other], 'row')} follow the other convention, {RULES[other]}")
    return wrong


def _against_the_prompt(labels: dict[str, Any], rows: int) -> list[str]:
    """Whether the labels, rightly declared or not, are those of the convention that the prompt does not ask for."""
    if labels["follows"] != "published":
        return []
    return [
        f"labels follow {RULES['published']} and the benchmark's prompt asks for {RULES['mathematical']}: by the "
        f"prompt {labels['published']} of {plural(rows, 'label')} are wrong"
    ]


def _ids(id_map: PermutationMap, tallies: dict[str, SplitCounts]) -> Section:
    used = set().union(*(tally.used for tally in tallies.values()))
    outside = {split: tally.outside for split, tally in tallies.items()}
    counts = {split: mistakes.count for split, mistakes in outside.items()}
    facts = {"in_map": len(id_map.ids), "used": len(used), "rows_outside": counts}
    return facts, _listed(outside, "an ID outside the map", "ID")


def _columns(tallies: dict[str, SplitCounts]) -> Section:
    names = dict.fromkeys(name for tally in tallies.values() for name in (*tally.declared, *tally.missing))
    facts: dict[str, Any] = {}
    wrong = []
    for name in names:
        missing = sum(tally.missing[name] for tally in tallies.values())
        counts = {split: tally.declared.get(name, Mistakes()) for split, tally in tallies.items()}
        facts[name] = {"missing": missing, "wrong": {split: mistakes.count for split, mistakes in counts.items()}}
        if missing:
            wrong.append(f"column {name} is missing in {plural(missing, 'row')}")
        wrong += _listed(counts, f"a {name} that does not fit", "it says")
    return facts, wrong


def _lengths(tallies: dict[str, SplitCounts]) -> dict[str, Any]:
    """What the published harness makes of the lengths: each row goes to the nearest of its 100 buckets."""
    lengths: Counter[int] = Counter()
    for tally in tallies.values():
        lengths.update(tally.lengths)
    rows = _rows(tallies)
    nearest, exact = nearest_buckets(lengths), exact_buckets(lengths)
    return {
        "shortest": min(lengths),
        "longest": max(lengths),
        "exactly_on_a_bucket": sum(exact.values()),
        "in_last_bucket": nearest[500],
        "exact": {str(bucket): {"rows": count, "share": count / rows} for bucket, count in exact.items()},
        "nearest": {str(bucket): {"rows": count, "share": count / rows} for bucket, count in nearest.items()},
    }


def _duplicates(tallies: dict[str, SplitCounts]) -> Section:
    """Equal sequences; short ones repeat by chance, so only what chance does not explain is a finding."""
    symbols = len(set().union(*(tally.used for tally in tallies.values())))
    within = {split: _measured(each.repeats, each.repeats_by_chance(symbols)) for split, each in tallies.items()}
    across = {
        f"{a}/{b}": _measured(one.shared(other), one.shared_by_chance(other, symbols))
        for (a, one), (b, other) in combinations(tallies.items(), 2)
    }
    wrong = [
        plural(n["rows"], "row", f"of {split} repeats", f"of {split} repeat") + " an earlier one"
        for split, n in within.items()
        if n["beyond_chance"]
    ]
    for pair, n in across.items():
        if n["beyond_chance"]:
            first, second = pair.split("/")
            rows = plural(tallies[second].rows, "row")
            wrong.append(f"{n['rows']} of the {rows} of {second} {'is' if n['rows'] == 1 else 'are'} also in {first}")
    return {"within": within, "across": across}, wrong


def _measured(rows: int, by_chance: float) -> dict[str, Any]:
    """Beyond chance: more than six standard deviations above a Poisson count of that mean."""
    return {"rows": rows, "by_chance": round(by_chance, 3), "beyond_chance": rows > by_chance + 6 * by_chance**0.5}


def _files(data: DataSet) -> Section:
    """The sha256 of the files whose metadata has one."""
    facts, wrong = {}, []
    for file in (file for files in data.splits.values() for file in files):
        recorded = recorded_sha256(file)
        if recorded:
            with file.open("rb") as opened:
                facts[file.name] = hashlib.file_digest(opened, "sha256").hexdigest() == recorded
            if not facts[file.name]:
                wrong.append(f"{file} is not the file that its metadata describes: the sha256 differs")
    return facts, wrong


def _listed(splits: dict[str, Mistakes], problem: str, what: str) -> list[str]:
    return [
        plural(mistakes.count, "row", f"of {split} has", f"of {split} have")
        + f" {problem}; the first is row {mistakes.row} ({what} {mistakes.says})"
        for split, mistakes in splits.items()
        if mistakes.count
    ]


def _rows(tallies: dict[str, SplitCounts]) -> int:
    return sum(tally.rows for tally in tallies.values())
