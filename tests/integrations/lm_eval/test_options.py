"""What --metadata may say, and rows from a local copy of published data."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from lm_eval.utils import make_table

from statetrack.errors import BadInput
from statetrack.integrations.lm_eval.definitions import files, task_name
from statetrack.integrations.lm_eval.options import HarnessOptions
from statetrack.tasks.groups import selector as selector_of
from tests.data.hub_stand_in import standing_in
from tests.integrations.lm_eval.scripted_models import Scripted, compose, sequence, symmetric_by_id

Evaluate = Callable[..., dict[str, Any]]
S3 = list(permutations(range(3)))


def test_metadata_chooses_rows_and_is_recorded(evaluate: Evaluate) -> None:
    seen = []
    for options in ({}, {"seed": 1}, {"seed": 1, "pretrained": "any", "max_length": 9}):
        model = Scripted(symmetric_by_id(3))
        found = evaluate(model, ["s3_composition"], {"per_length": 2, **options}, limit=100)
        assert found["n-samples"]["s3_composition"] == {"original": 200, "effective": 100}
        recorded = found["configs"]["s3_composition"]["metadata"]
        assert recorded["options"]["seed"] == options.get("seed", 0)
        assert recorded["options"]["per_length"] == 2
        assert recorded["version"] == 2.0
        assert "pretrained" not in json.dumps(recorded)
        seen.append([prompt for prompt, _ in model.seen])
    assert seen[0] != seen[1] == seen[2]


@pytest.mark.parametrize("lengths", ["500, 5,50", [5, 50, 500]])
def test_some_lengths_have_the_same_rows_and_a_table_of_as_many_lines(evaluate: Evaluate, lengths: Any) -> None:
    every, some = Scripted(symmetric_by_id(3)), Scripted(symmetric_by_id(3))
    evaluate(every, ["s3_composition"], {"per_length": 2})
    found = evaluate(some, ["s3_composition"], {"per_length": 2, "lengths": lengths})
    asked = {prompt for prompt, _ in some.seen}
    assert sorted(len(sequence(prompt)) for prompt in asked) == [5, 5, 50, 50, 500, 500]
    assert asked <= {prompt for prompt, _ in every.seen}
    lines = [line.split("|")[5].strip() for line in make_table(found).splitlines()[2:]]
    assert lines == ["5", "50", "500", "acc", "chance", "falls_below_half", "n_per_length", "too_long"]
    assert found["results"]["s3_composition"]["50,none"] == 1


def test_a_selector_of_some_lengths_leaves_out_the_others(
    evaluate: Evaluate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its file names all 100 lengths; the harness says nothing of those that nobody asked for."""
    [selector] = [text for name, text in files() if name == "nc1_groups.yaml"]
    (tmp_path / "few.yaml").write_text(
        selector.replace('"nc1_groups"', '"few"').replace(
            json.dumps([task_name(group) for group in selector_of("nc1_groups")]),
            '["a5_composition", "s5_composition"]',
        )
    )
    with caplog.at_level(logging.WARNING):
        found = evaluate(Scripted(lambda prompt: ""), ["few"], {"lengths": "5,50"}, include=tmp_path, limit=2)
    lines = [line.split("|")[5].strip() for line in make_table(found, "groups").splitlines()[2:]]
    assert lines == ["5", "50", "acc", "chance"]
    assert "few" not in caplog.text


@pytest.mark.parametrize(
    ("metadata", "generates", "said"),
    [
        ({"per_lenght": 3}, False, "unknown option in --metadata 'per_lenght'; did you mean per_length"),
        ({"per_length": 0}, False, "per_length=0 in --metadata should be a whole number, 1 or more"),
        ({"per_length": "20"}, False, "per_length='20' in --metadata should be a whole number"),
        ({"seed": -1}, False, "seed=-1"),
        ({"seed": True}, False, "seed=True"),
        ({"relabel": 1.5}, False, "relabel=1.5"),
        ({"style": "tables"}, False, "unknown style 'tables'; did you mean table"),
        ({"parser": "lenient"}, False, "_composition_gen"),
        ({"parser": "loose"}, True, "unknown parser 'loose'"),
        ({"labels": "right"}, False, "labels belong to published data"),
        ({"labels": "rigth", "data": "x"}, False, "unknown labels 'rigth'; did you mean right"),
        ({"data": "x", "style": "table"}, False, "published rows have IDs of their own"),
        ({"lengths": "5,7"}, False, "lengths='5,7' in --metadata should be some of 5, 10, ..., 500"),
        ({"lengths": []}, False, "lengths="),
        ({"lengths": {"5": 1}}, False, "lengths="),
    ],
)
def test_what_makes_no_sense_is_refused(metadata: dict[str, Any], generates: bool, said: str) -> None:
    with pytest.raises(BadInput, match=said.replace("(", r"\(")):
        HarnessOptions.read(metadata, generates)


def test_the_arguments_of_models_are_none_of_our_options() -> None:
    words = "pretrained tokenizer revision dtype device max_length parallelize trust_remote_code gguf_file peft"
    assert HarnessOptions.read(dict.fromkeys(words.split(), "x"), generates=False) == HarnessOptions()


# ---- published data --------------------------------------------------------------------------------------------------


def publish(folder: Path, backwards: bool, lengths: list[int]) -> None:
    """s3 in the published schema, in another numbering than ours, with labels in either order."""
    draw = random.Random(0)
    elements = draw.sample(S3, 6)
    folder.mkdir(parents=True)
    rows = []
    for length in lengths:
        ids = draw.choices(range(6), k=length)
        steps = [elements[each] for each in ids]
        rows.append(
            {
                "input_sequence": " ".join(map(str, ids)),
                "target": str(elements.index(compose(steps[::-1] if backwards else steps))),
                "sequence_length": length,
                "group_degree": 3,
                "group_order": 6,
                "group_type": "symmetric",
            }
        )
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    numbered = {str(element): list(images) for element, images in enumerate(elements)}
    (folder / "metadata.json").write_text(json.dumps({"permutation_map": numbered}))


def solver(folder: Path, backwards: bool) -> Scripted:
    """Composes by the set's own map."""
    numbered = json.loads((folder / "metadata.json").read_text())["permutation_map"]
    elements = [tuple(numbered[str(element)]) for element in range(6)]

    def greedy(prompt: str) -> str:
        steps = [elements[int(word)] for word in sequence(prompt)]
        return f" {elements.index(compose(steps[::-1] if backwards else steps))}"

    return Scripted(greedy)


def test_published_rows_are_taken_at_exact_lengths(evaluate: Evaluate, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "s3_data"
    publish(folder, False, [3, 5, 5, 5, 7, 10, 498, 500, 502, 1000])
    model = solver(folder, False)
    found = evaluate(model, ["s3_composition"], {"data": str(tmp_path), "per_length": 2})
    got = found["results"]["s3_composition"]
    assert sorted(len(sequence(prompt)) for prompt, _ in model.seen) == [5, 5, 10, 500]
    assert [len(sequence(prompt)) for prompt, _ in model.seen][-1] == 5  # the second round has one length left
    assert (got["5,none"], got["10,none"], got["500,none"], got["15,none"], got["acc,none"]) == (1, 1, 1, -1, 1)
    assert got["n_per_length,none"] == 1
    assert found["configs"]["s3_composition"]["metadata"]["findings"] == []


def test_a_defective_set_says_so_and_can_be_mended(
    evaluate: Evaluate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "s3"
    publish(folder, True, [5, 10, 15, 20, 25] * 8)
    options = {"data": str(folder)}
    with caplog.at_level(logging.WARNING):
        found = evaluate(solver(folder, True), ["s3_composition"], options)
    findings = found["configs"]["s3_composition"]["metadata"]["findings"]
    assert any("labels follow p_1 ∘ ... ∘ p_n (published): 40 of 40 rows" in finding for finding in findings)
    assert all(any(finding in record.getMessage() for record in caplog.records) for finding in findings)
    assert found["results"]["s3_composition"]["acc,none"] == 1  # scored by the labels that are published
    right = evaluate(solver(folder, False), ["s3_composition"], {**options, "labels": "right"})
    assert right["results"]["s3_composition"]["acc,none"] == 1


BEWARE = "labels follow p_1 ∘ ... ∘ p_n and the benchmark's prompt asks for p_n ∘ ... ∘ p_1: by the prompt "


def test_labels_of_the_other_convention_than_the_prompt_s_are_warned_of_though_they_say_so(
    evaluate: Evaluate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "s3"
    publish(folder, True, [5, 10, 15, 20, 25] * 8)
    metadata = json.loads((folder / "metadata.json").read_text())
    (folder / "metadata.json").write_text(json.dumps({**metadata, "convention": "published"}))
    by_the_prompt = solver(folder, False)
    with caplog.at_level(logging.WARNING):
        found = evaluate(by_the_prompt, ["s3_composition"], {"data": str(folder)})
    (warning,) = found["configs"]["s3_composition"]["metadata"]["findings"]
    wrong = round(40 * (1 - found["results"]["s3_composition"]["acc,none"]))  # of answers that are right by the prompt
    assert warning == f"{BEWARE}{wrong} of 40 labels are wrong"
    assert f"{folder}: {warning}" in [record.getMessage() for record in caplog.records]
    right = evaluate(by_the_prompt, ["s3_composition"], {"data": str(folder), "labels": "right"})
    assert right["configs"]["s3_composition"]["metadata"]["findings"] == []
    assert right["results"]["s3_composition"]["acc,none"] == 1


def test_published_data_by_name_on_the_hub(evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing_in(tmp_path / "cache", monkeypatch) as hub:
        for name in ("s3_data", "a3_data"):
            publish(tmp_path / "all" / name, False, [5, 10, 15])
        hub.put("somebody/groups", tmp_path / "all", "data/")
        model = solver(tmp_path / "all" / "s3_data", False)
        for data in ("hub:somebody/groups", "hub:somebody/groups/data/s3_data"):
            found = evaluate(model, ["s3_composition"], {"data": data})
            assert found["results"]["s3_composition"]["acc,none"] == 1
            assert found["n-samples"]["s3_composition"]["effective"] == 3
        assert not any("a3_data" in path for path in hub.fetched)
        with pytest.raises(BadInput, match="the hub has no data set of that name"):
            evaluate(model, ["s3_composition"], {"data": "hub:somebody/else"})


def test_data_that_is_not_there_is_refused(evaluate: Evaluate, tmp_path: Path) -> None:
    publish(tmp_path / "s3_data", False, [4, 5])
    for task, options, said in (
        ("s3_composition", {"data": str(tmp_path / "nowhere")}, "does not exist"),
        ("s4_composition", {"data": str(tmp_path / "s3_data")}, "holds no s4; name its file or folder s4 or s4_data"),
    ):
        with pytest.raises(BadInput, match=said):
            evaluate(Scripted(lambda prompt: ""), [task], options)
    publish(tmp_path / "other" / "s3", False, [4, 6])
    with pytest.raises(BadInput, match="no row whose length is one of 5, 10,"):
        evaluate(Scripted(lambda prompt: ""), ["s3_composition"], {"data": str(tmp_path / "other")})
    with pytest.raises(BadInput, match="holds s3 more than once"):
        evaluate(Scripted(lambda prompt: ""), ["s3_composition"], {"data": str(tmp_path)})
    with pytest.raises(BadInput, match="num_fewshot needs generated ones"):
        evaluate(Scripted(lambda prompt: ""), ["s3_composition"], {"data": str(tmp_path / "s3_data")}, num_fewshot=2)
