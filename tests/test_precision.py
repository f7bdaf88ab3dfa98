"""The precision ladder: what each rung does to weights and states, and that networks that live on rounding fall off."""

from __future__ import annotations

import pytest
import torch

import statetrack as st
from benchmarks import precision
from benchmarks.precision import Outcome, Rung, outcome, rounding, rungs
from statetrack.models.witnesses import even_counter, sign, tiny_counter, toggle

pytestmark = pytest.mark.needs("torch")
CPU = torch.device("cpu")
BY_NAME = {rung.name: rung for rung in rungs(CPU)}
GPU_ONLY = {"fp32, triton", "fp32, cuda", "tf32"}


def test_a_cpu_has_all_rungs_but_those_of_a_gpu() -> None:
    names = {"fp64", "fp32", "fp32, reference", "autocast", "bf16", "fp16", "bf16 state", "fp16 state"}
    assert set(BY_NAME) == names
    on_gpu = {rung.name for rung in rungs(torch.device("cuda"))}
    assert on_gpu - names == GPU_ONLY
    assert names - on_gpu == {"fp32, reference"}


def test_numbers_are_rounded_and_keep_their_type() -> None:
    x = torch.tensor([1.0 + 2.0**-9, 70_000.0])
    assert rounding(torch.bfloat16)(x).tolist() == [1.0, 70_144.0]
    assert rounding(torch.float16)(x).tolist() == [1.0 + 2.0**-9, float("inf")]
    assert rounding(torch.float16)(x).dtype == torch.float32
    assert rounding(torch.float16)(torch.tensor([3])).dtype == torch.int64


def ran(text: str, model: torch.nn.Module, name: str, steps: int = 64) -> Outcome:
    return outcome(st.task(text), model, BY_NAME[name], steps, CPU)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_network_that_pulls_back_is_right_on_every_rung(name: str) -> None:
    assert ran("txc", toggle([[0, 1], [1, 0]]), name) == Outcome(5 * 64, 0, None)


def test_networks_that_live_on_rounding_are_right_where_it_is_theirs_alone() -> None:
    """Even numbers near 2^24 are those of fp32; weights of 2^24 are no number of fp16."""
    for model, text, right, wrong in (
        (even_counter(), "txc", "fp32", "fp64"),
        (sign(), "txc", "fp64", "fp16"),
        (tiny_counter(), "rtc", "bf16", "fp16"),
    ):
        assert ran(text, model, right).first is None
        assert ran(text, model, wrong).first == 1


def test_the_state_is_rounded_after_every_step() -> None:
    seen: list[int] = []

    def counted(tensor: torch.Tensor) -> torch.Tensor:
        seen.append(len(tensor))
        return tensor

    model = toggle([[0, 1], [1, 0]])
    before = {name: p.clone() for name, p in model.named_parameters()}
    rung = Rung("counted", state=counted)
    assert outcome(st.task("txc"), model, rung, 10, CPU).wrong == 0
    assert seen == [5] * 10
    outcome(st.task("txc"), model, BY_NAME["fp64"], 4, CPU)
    for name, parameter in model.named_parameters():  # the network that was given stays as it was
        assert torch.equal(parameter, before[name])
        assert parameter.dtype == torch.float32


def test_one_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["parity-tanh-rnn", "witness: even numbers"]
    assert precision.main(["64", "8", *names]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith(names[0])).split() == [names[0], "txc", *["right"] * 8]
    assert any(line.startswith(names[1]) and " 1: " in line for line in lines)
    assert precision.main(["64", "8", "no-such"]) == 2
