"""Weights that exist are tested and not trained: figures against a brute-force count, and what is refused."""

from __future__ import annotations

import json
import shlex
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import statetrack as st
from statetrack.errors import BadInput
from statetrack.results import EvaluatedRecord, Store, TrainingRecord
from statetrack.results.evaluations import OnRows, OnStream, OnWords
from statetrack.training import train
from statetrack.training.evaluate import Evaluator
from statetrack.training.weight_file import look_at, sha256_of
from tests.strangers import SHORT

GRU = "gru[dim=4,hidden=8]"
evaluate = st.evaluate


class Right(nn.Module):
    """Parity, counted exactly."""

    def initial_state(self, batch: int, device: Any) -> Tensor:
        return torch.zeros(batch, 2, dtype=torch.long, device=device)  # ones so far, position

    def forward_from(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        ones = state[:, :1] + ids.cumsum(1)
        places = state[:, 1:] + torch.arange(1, ids.shape[1] + 1)
        after = torch.cat([ones[:, -1:], places[:, -1:]], 1)
        return nn.functional.one_hot(self.answer(ones, places), 2).float(), after

    def answer(self, ones: Tensor, places: Tensor) -> Tensor:
        return ones % 2

    def forward(self, ids: Tensor) -> Tensor:
        return self.forward_from(ids, self.initial_state(len(ids), ids.device))[0]


class Zero(Right):
    def answer(self, ones: Tensor, places: Tensor) -> Tensor:
        return 0 * ones


class Twenty(Right):
    """Right to the 20th position, 0 after it."""

    def answer(self, ones: Tensor, places: Tensor) -> Tensor:
        return torch.where(places <= 20, ones % 2, 0)


def counted(kind: type[Right], bits: np.ndarray, last: int) -> tuple[float, float]:
    """The accuracy over all positions and over the last ones, counted bit by bit."""
    marks = []
    for row in bits.tolist():
        state, right = 0, []
        for place, bit in enumerate(row, 1):
            state ^= bit
            said = {Right: state, Zero: 0, Twenty: state if place <= 20 else 0}[kind]
            right.append(said == state)
        marks.append(right)
    return float(np.mean(marks)), float(np.mean([row[-last:] for row in marks]))


@pytest.mark.parametrize("kind", [Right, Zero, Twenty])
def test_modules_of_known_behaviour_get_the_figures_of_a_count_by_hand(kind: type[Right]) -> None:
    found = evaluate("txc", kind(), lengths=[8, 48], stream=1536, words=20_000, seed=5)
    rows = found.record.rows
    for length in (8, 48):
        bits = st.task("txc").sample(length, rows[length].rows, 5, "test").inputs
        whole, end = counted(kind, bits, 32)
        assert rows[length].accuracy == pytest.approx(whole)
        assert rows[length].last_32_accuracy == pytest.approx(end)
        assert rows[length].floor == pytest.approx(0.5)
        low, high = rows[length].interval or (1, 0)
        assert low <= whole <= high
    (stream,) = found.record.streams
    bits = st.task("txc").sample(1536, stream.rows, 5, "test").inputs
    ends = {"1024": counted(kind, bits[:, :1024], 1024)[1], "1536": counted(kind, bits, 1024)[1]}
    assert stream.accuracy == pytest.approx(ends)
    assert found.broken_by == {Right: "-", Zero: "1", Twenty: found.broken_by}[kind]
    if kind is Twenty:
        word = found.record.broken
        assert word is not None
        assert (word.tokens, sum(word.symbols) % 2, word.expected, word.given) == (21, 1, 1, 0)
    solved = {row["tested"]: row["solved"] for row in found.rows if row["of"] == "rows"}
    assert solved == {8: kind is not Zero, 48: kind is Right}


def test_it_reads_as_a_table_with_floors_and_intervals_and_not_as_a_training() -> None:
    found = evaluate("txc", Zero(), lengths=[8], words=0)
    first, _, _, row, _, last = repr(found).splitlines()
    assert first == f"txc, zero, weights {sha256_of(nn.Module())[:8]} (0 parameters): evaluated, nothing was trained"
    here = found.record.rows[8]
    low, high = here.interval or (0, 0)
    assert row.split() == [
        "rows", "8", "1,024", f"{here.accuracy:.4f}", f"{low:.4f}", "to", f"{high:.4f}", "0.5000",
        f"{here.last_32_accuracy:.4f}", "0.5000", "no",
    ]  # fmt: skip
    assert last == "no hard words were tried"
    assert not isinstance(found.record, TrainingRecord)
    (plain,) = found.rows
    assert (plain["of"], plain["tested"], plain["trained"], plain["n"]) == ("rows", 8, None, 8192)
    assert plain["end_floor"] == pytest.approx(0.5)
    assert "evaluate" in dir(st)


@pytest.mark.needs("pandas")
def test_its_rows_are_a_frame_of_the_long_table() -> None:
    found = evaluate("txc", Right(), lengths=[8, 16], stream=1024, words=5000)
    frame = found.to_pandas()
    assert frame["of"].tolist() == ["rows", "rows", "stream", "words"]
    assert frame["end_floor"].tolist()[:3] == pytest.approx([0.5, 0.5, 0.5])
    assert frame["learning_rate"].isna().all()


def trained(folder: Path, model: str = GRU, **more: Any) -> tuple[TrainingRecord, Path]:
    result = train("txc", model, length=4, settings=SHORT, out=folder, device="cpu", **more)
    return result.record, Store(folder).path(result.cell, "safetensors")


def test_the_numbers_are_those_of_a_training_on_the_same_weights(tmp_path: Path) -> None:
    record, path = trained(tmp_path, stream=2048, words=20_000, seed=2)
    lengths = [4, 8, 16, 32, 64]
    ours = evaluate("txc", weights=path, lengths=lengths, stream=2048, words=20_000, seed=2, device="cpu").record
    assert ours.evaluations == (*record.of(OnRows), *record.of(OnStream), *record.of(OnWords))
    assert (ours.cell.length, ours.weights.trained_as) == (4, str(record.cell))
    save_file({name: tensor.clone() for name, tensor in st.model("mlp", inputs=2, outputs=2).state_dict().items()},
              tmp_path / "theirs.safetensors")  # fmt: skip
    theirs = evaluate("txc", "mlp", weights=tmp_path / "theirs.safetensors", lengths=[4], words=0)
    assert (theirs.record.cell.length, theirs.record.weights.trained_as) == (0, "")


def test_a_result_knows_its_length_and_its_seed() -> None:
    result = train("txc", GRU, length=4, seed=2, settings=SHORT, words=0, device="cpu")
    ours = evaluate("txc", result, words=0).record
    assert (ours.cell.length, ours.cell.seed, list(ours.rows)) == (4, 2, [4, 8, 16, 32, 64])
    assert ours.evaluations == tuple(result.record.of(OnRows))
    other = evaluate("fsm", result, lengths=8, seed=0, words=0).record
    assert (other.cell.task, other.cell.seed, list(other.rows)) == ("fsm", 0, [8])


def test_another_task_over_the_same_alphabet_may_be_tried(tmp_path: Path) -> None:
    record, path = trained(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.glob("[!.]*")}
    found = evaluate("rtc", weights=path, lengths=[8], words=0, out=tmp_path, device="cpu")
    assert found.record.cell.task == "rtc"
    bits = st.task("rtc").sample(8, 1024, 0, "test")
    model = st.training.weights.load(Store(tmp_path), record.cell)
    assert found.record.rows[8].accuracy == pytest.approx(Evaluator(st.task("rtc"), model, 8, 0).right(bits).mean())
    after = {file.name: file.read_bytes() for file in tmp_path.glob("[!.]*")}
    assert {name: after[name] for name in before} == before


def test_a_record_is_kept_and_a_second_run_measures_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = trained(tmp_path / "trained")
    first = evaluate("txc", weights=path, lengths=[4, 8], words=5000, out=tmp_path / "out", device="cpu").record
    assert Store(tmp_path / "out").read(first.cell) == first
    measured: list[int] = []
    honest = Evaluator.beyond
    monkeypatch.setattr(Evaluator, "beyond", lambda self, length: (measured.append(length), honest(self, length))[1])
    again = evaluate("txc", weights=path, lengths=[8, 16], words=5000, out=tmp_path / "out", device="cpu").record
    assert measured == [16]
    assert again.evaluations[:3] == first.evaluations
    assert list(again.rows) == [4, 8, 16]
    (kept,) = Store(tmp_path / "out").records()
    assert isinstance(kept, EvaluatedRecord)
    assert kept == again


OWN = """
import torch
class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)
    def forward(self, ids):
        return self.table(ids)
"""


def test_a_class_of_ones_own_takes_weights_by_its_own_names(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    name = f"{tmp_path}/own.py:Own"
    for file, key in (("own", "table.weight"), ("kept", "module.table.weight")):
        save_file({key: torch.eye(2)}, tmp_path / f"{file}.safetensors")
    own, kept = (evaluate("txc", name, weights=tmp_path / f"{file}.safetensors", lengths=[4, 8], words=0,
                          out=tmp_path / "out").record for file in ("own", "kept"))  # fmt: skip
    assert own.cell == kept.cell
    bits = st.task("txc").sample(8, 1024, 0, "test")
    assert own.rows[8].accuracy == pytest.approx((bits.inputs == bits.targets).mean())  # it repeats the input


def test_a_module_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Embedding(2, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    module[2].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    evaluate("txc", module, lengths=[4], words=0)
    assert [part.training for part in module] == [True, True, False]
    assert all(parameter.requires_grad for parameter in module.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def save(folder: Path, **changes: Tensor | None) -> Path:
    """Weights of GRU for parity, with some of them replaced or left out."""
    tensors = dict(st.model("gru", inputs=2, outputs=2, seed=0, dim=4, hidden=8).state_dict())
    for name, tensor in changes.items():
        key = name.replace("__", ".")
        tensors = {each: held for each, held in tensors.items() if each != key}
        tensors |= {} if tensor is None else {key: tensor}
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, folder / "w.safetensors")
    return folder / "w.safetensors"


@pytest.mark.parametrize(
    ("changes", "task", "line"),
    [
        ({}, "s3", r"w.safetensors does not fit gru\[dim=4,hidden=8\] for s3_composition: embedding.weight is \(2, 4\) "
                   r"there, \(6, 4\) in the model"),
        ({"head__bias": None}, "txc", "for txc: head.bias is in the model only"),
        ({"head__more": torch.zeros(1)}, "txc", "head.more is in w.safetensors only"),
        ({"head__weight": torch.zeros(2, 9)}, "txc", r"head.weight is \(2, 9\) there, \(2, 8\) in the model"),
        ({"head__weight": torch.zeros(2, 8, dtype=torch.long)}, "txc", "head.weight holds I64, not fractions"),
        ({"head__bias": torch.tensor([0.0, float("nan")])}, "txc", "w.safetensors: head.bias holds NaN"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_by_the_tensor(
    tmp_path: Path, changes: dict[str, Any], task: str, line: str
) -> None:
    with pytest.raises(BadInput, match=line):
        evaluate(task, GRU, weights=save(tmp_path, **changes))


def test_a_pickle_is_refused_with_a_line_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "it's.pt"
    torch.save(st.model("gru", inputs=2, outputs=2, seed=0, dim=4, hidden=8).state_dict(), path)
    for name in (path, path.rename(tmp_path / "renamed.safetensors").rename(path)):
        with pytest.raises(BadInput, match="is a pickle, which runs code when it is read; convert it: python -c") as no:
            evaluate("txc", GRU, weights=name)
    _, _, line = str(no.value).partition("convert it: ")
    python, option, code = shlex.split(line)
    assert (python, option) == ("python", "-c")
    exec(code)
    assert evaluate("txc", GRU, weights=tmp_path / "it's.safetensors", lengths=[4], words=0).record.rows[4].rows == 1024


@pytest.mark.parametrize("size", [640, 896, 1152, 1408])
def test_weights_whose_first_bytes_are_those_of_a_pickle_are_read(tmp_path: Path, size: int) -> None:
    """A safetensors file begins with the length of its header, and 80 04 is 1,152."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).ljust(size).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", size) + header + bytes(4))
    assert look_at(tmp_path / "w.safetensors").shapes == {"w": (1,)}


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 64, b"\x08\0\0\0\0\0\0\0{\"a\":1}}"])  # fmt: skip
def test_a_file_that_is_none_of_weights_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match=r"w\.safetensors is damaged or no safetensors file"):
        evaluate("txc", GRU, weights=tmp_path / "w.safetensors")
    with pytest.raises(BadInput, match="there is no file"):
        evaluate("txc", GRU, weights=tmp_path / "none.safetensors")


class Peeks(nn.Module):
    """Reads the answer at lengths beyond 40, from inputs that come later."""

    def forward(self, ids: Tensor) -> Tensor:
        later = ids.flip(1).cumsum(1).flip(1) if ids.shape[1] > 40 else ids
        return nn.functional.one_hot(later % 2, 2).float()


class Wide(nn.Module):
    def __init__(self, inputs: int = 2, outputs: int = 3) -> None:
        super().__init__()
        self.table = nn.Embedding(inputs, outputs)

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids)


@pytest.mark.parametrize(
    ("task", "model", "more", "line"),
    [
        ("txc", Peeks(), {"lengths": [64]}, "Peeks is not causal at length 64: logits change with inputs that come"),
        ("txc", Wide(), {}, r"Wide returns shape \(3, 7, 3\) for ids \(3, 7\); expected .* = \(3, 7, 2\)"),
        ("s3", Wide(2, 6), {}, r"Wide fails on ids of shape \(3, 7\), 0 to 5: IndexError"),
        ("s3", st.model("mlp", inputs=2, outputs=6), {}, "MLP was built for 2 inputs, here there are 6"),
        ("txc", Wide(2, 2), {"stream": 64}, "wide cannot be streamed: the model shows no state of constant size"),
        ("txc", st.model("transformer", inputs=2, outputs=2, positions=32, layers=1), {"lengths": [16, 64]},
         r"transformer\[layers=1,positions=32\] has 32 positions; length 64 does not fit"),
        ("txc", Right(), {"lengths": [2**20 + 1]}, "whole rows are tested to 1048576; a stream goes further"),
        ("txc", Right(), {"lengths": [0]}, "length 0 should lie in"),
        ("txc", Right(), {"lengths": ["8"]}, "length '8' should be a whole number"),
        ("txc", Right(), {"lengths": [], "words": 0}, "there is nothing to measure"),
        ("txc", Right(), {"stream": -1}, "stream -1 should lie in"),
        ("txc", Right(), {"words": 3}, r"words 3 should be 0, or a number of tokens in 64"),
        ("txc", Right(), {"trained": 0}, "length 0 should lie in"),
        ("txc", Right(), {"seed": -1}, "seed -1 should be a whole number"),
        ("txc", Right(), {"device": "tpu"}, "device 'tpu' should be auto, cpu or cuda"),
        ("txc", Right(), {"out": "results"}, "Right given as a module does not say how it was built"),
        ("txc", "gru", {}, "'gru' has no weights of its own: give weights=FILE.safetensors, or a torch.nn.Module"),
        ("txc", None, {}, "there are no weights: give weights=FILE"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_refused_in_one_line(
    task: str, model: Any, more: dict[str, Any], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=line):
        evaluate(task, model, **more)
    assert not list(tmp_path.iterdir())


def test_a_model_with_few_positions_is_tested_as_far_as_they_go() -> None:
    model = st.model("transformer", inputs=2, outputs=2, seed=0, positions=32, layers=1, dim=8, heads=1)
    assert list(evaluate("txc", model, words=0).record.rows) == [32]
    assert list(evaluate("txc", model, words=0, trained=8).record.rows) == [8, 16, 32]


def test_what_fails_at_one_length_alone_is_said_there() -> None:
    class Short(Right):
        def forward(self, ids: Tensor) -> Tensor:
            if ids.shape[1] > 10:
                raise ValueError("too long for me")
            return super().forward(ids)

    found = evaluate("txc", Short(), lengths=[8, 16], words=0)
    assert found.record.rows[8].accuracy == 1
    assert "no rows of 16: ValueError: too long for me" in repr(found)


def test_a_file_that_names_code_does_not_run_it(tmp_path: Path) -> None:
    """The note in a file may be anybody's; a name that is given in the call may run."""
    mark = tmp_path / "it ran"
    (tmp_path / "own.py").write_text(f"{OWN}\nopen({str(mark)!r}, 'w').close()\n")
    trained(tmp_path / "out", f"{tmp_path}/own.py:Own")
    mark.unlink()
    (path,) = (tmp_path / "out").glob("*.safetensors")
    (tmp_path / "own.py").write_text(f"{OWN}\nopen({str(mark)!r}, 'w').close()  # other bytes\n")
    with pytest.raises(BadInput, match="has changed: its sha256"):
        evaluate("txc", weights=path)
    assert not mark.exists()
    assert evaluate("txc", f"{tmp_path}/own.py:Own", weights=path, lengths=[4], words=0).record.rows[4].rows == 1024
