"""The checker accepts true proofs of hand-made networks, and no proof that was tampered with."""

from __future__ import annotations

import ast
import copy
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

import statetrack as st
from statetrack.certificates.certify import BROKEN, OPEN, PROVED, Certificate, certify, kind_of, tensors_of
from statetrack.certificates.checker import Refused, check, hash_of, read_tensors
from statetrack.certificates.checker import __file__ as checker_file
from statetrack.certificates.checker.cover import unpacked
from statetrack.certificates.checker.float32 import gelu_error, linear_error, normed_error
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.certificates.cover import PointMaps, packed
from statetrack.cli import main
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton, permutations, toggle
from statetrack.training import checkpoint

KINDS = {"centres": "<f8", "radii": "<f8", "next": "<i4"}
WITNESSES = ("parity by e88-gain", "parity by tanh-rnn", "s3 by reflections")


@cache
def witness(name: str) -> tuple[st.Task, SequenceModel]:
    if name == "s3 by reflections":
        elements = st.group("s3").elements
        return st.task("s3_composition"), permutations(elements, elements)
    parity = st.task("txc")
    if name == "parity by e88-gain":
        return parity, toggle([[0, 1], [1, 0]])
    machine = parity.automaton  # type: ignore[attr-defined]
    return parity, automaton(machine.steps, machine.answers)


@cache
def certified(name: str) -> Certificate:
    return certify(*witness(name))


def proof_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = certified(name).proof
    assert found is not None
    return copy.deepcopy(found), tensors_of(witness(name)[1])


@pytest.mark.parametrize("name", WITNESSES)
def test_witnesses_are_proved(name: str) -> None:
    found = certified(name)
    assert found.outcome == PROVED
    assert found.checked is not None
    assert found.checked.margin > 0
    assert found.checked.covers_float32


@pytest.mark.parametrize("name", WITNESSES)
def test_the_maps_of_the_checker_are_those_of_the_model(name: str) -> None:
    """The equations are written twice; run along random words, both give the same states within float32's error."""
    task, model = witness(name)
    network = NETWORKS[kind_of(model)](tensors_of(model), task.inputs)
    maps, error = PointMaps.of(network), network.float32_error()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        state, own = model.initial_state(1), maps.start_of(maps.columns)
        for token in rng.integers(0, task.inputs, 20).tolist():
            before = state[0].numpy().astype(np.float64).reshape(maps.start.shape)
            own = np.stack([before[head, :, column] for head, column in maps.columns])
            _, state = model.step(torch.tensor([token]), state)
            after = state[0].numpy().reshape(maps.start.shape)
            there = np.stack([after[head, :, column] for head, column in maps.columns])
            assert np.abs(maps.image(maps.columns, token, own) - there).max() <= error


@pytest.mark.parametrize("name", WITNESSES)
def test_the_margin_is_below_that_of_the_model(name: str) -> None:
    """On real rows the logits of the right class are above the others by at least what was proved."""
    task, model = witness(name)
    found = certified(name).checked
    assert found is not None
    batch = task.sample(40, 64, seed=1)
    with torch.no_grad():
        logits = model(torch.from_numpy(batch.inputs.astype(np.int64))).numpy().astype(np.float64)
    right = np.take_along_axis(logits, batch.targets[..., None].astype(np.int64), 2)[..., 0]
    np.put_along_axis(logits, batch.targets[..., None].astype(np.int64), -np.inf, 2)
    assert (right - logits.max(axis=2)).min() >= found.margin


def refused(proof: dict[str, Any], tensors: dict[str, Any], why: str | None = None) -> None:
    with pytest.raises(Refused, match=why):
        check(proof, tensors)


@pytest.mark.parametrize("name", WITNESSES)
@pytest.mark.parametrize("what", ["moved", "shrunk", "led astray"])
def test_tampered_proofs_are_refused(name: str, what: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        proof, tensors = proof_of(name)
        cover = proof["covers"][0]
        centres, radii, following = (unpacked(cover[each], kind).copy() for each, kind in KINDS.items())
        region = int(rng.integers(len(following)))
        if what == "moved":
            centres[region] += 3.0
        elif what == "shrunk":
            radii[region] = 0.0
        else:
            following[region, 0] = (following[region, 0] + 1 + rng.integers(len(following) - 1)) % len(following)
        cover |= {each: packed(values, KINDS[each]) for each, values in zip(KINDS, (centres, radii, following))}
        try:
            check(proof, tensors)
        except Refused:
            continue
        # What is accepted must be true: only another region that holds the image as well may be led to.
        assert what == "led astray"


@pytest.mark.parametrize("name", WITNESSES)
def test_another_claim_is_refused(name: str) -> None:
    proof, tensors = proof_of(name)
    refused({**proof, "epsilon": 0.5}, tensors)
    refused({**proof, "epsilon": -1.0}, tensors, "epsilon")
    other = "s3_composition" if proof["task"] == "txc" else "txc"
    refused({**proof, "task": other}, tensors, "tokens")
    flipped = {name: tensor.copy() for name, tensor in tensors.items()}
    first = next(iter(flipped.values())).reshape(-1)
    first[0] = np.float32(first[0]) + np.float32(0.5)
    refused(proof, flipped, "not those")


def test_a_wrong_automaton_is_refused() -> None:
    """The same weights for another task over two symbols and two answers: three ones instead of parity."""
    proof, tensors = proof_of("parity by e88-gain")
    refused({**proof, "task": "fsm"}, tensors)


@pytest.mark.parametrize("name", WITNESSES)
def test_weights_that_read_wrongly_are_refused(name: str) -> None:
    """The answers of two classes exchanged, with a hash that fits: the cover closes and the read-out is wrong."""
    proof, tensors = proof_of(name)
    head = {each: tensor[::-1].copy() if each.startswith("head.") else tensor for each, tensor in tensors.items()}
    refused({**proof, "weights": hash_of(head)}, head, "read-out")


def test_what_is_not_a_proof_is_refused_by_verify(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    from statetrack.certificates.checker import verify

    weights, proof = tmp_path / "w.safetensors", tmp_path / "p.json"
    save_file({name: tensor.contiguous() for name, tensor in witness(WITNESSES[0])[1].state_dict().items()}, weights)
    for text in ("{}", "[]", '{"weights": 3}', "nonsense", ""):
        proof.write_text(text)
        with pytest.raises(Refused):
            verify(proof, weights)


def test_a_network_that_errs_is_never_proved() -> None:
    """Right on all but words with eleven ones in a row: hard words find it, and no proof is."""
    task = st.task("txc")
    length = 11
    states = [(parity, run) for parity in (0, 1) for run in range(length + 1)]
    number = {state: place for place, state in enumerate(states)}
    steps = np.array(
        [[number[parity ^ bit, min(length, run + 1) if bit else 0] for bit in (0, 1)] for parity, run in states]
    )
    answers = np.array([parity if run < length else 1 - parity for parity, run in states])
    model = automaton(steps, answers)
    found = certify(task, model)
    assert found.outcome in (BROKEN, OPEN)
    assert found.proof is None


def test_the_checker_imports_nothing_of_the_search_or_the_models() -> None:
    for path in Path(checker_file).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for each in names:
                allowed = ("statetrack.certificates.checker", "statetrack.tasks")
                assert not each.startswith("statetrack") or each.startswith(allowed), (path.name, each)
                assert not each.startswith("torch")


@pytest.mark.parametrize("name", WITNESSES)
def test_the_logits_of_float32_lie_within_what_is_bounded(name: str) -> None:
    """The same read-out in float64 and in float32, of states that float32 came to."""
    task, model = witness(name)
    checked = certified(name).checked
    assert checked is not None
    exact = copy.deepcopy(model).double()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        before, furthest = model.initial_state(64), 0.0
        for tokens in torch.from_numpy(rng.integers(0, task.inputs, (30, 64))):
            logits, state = model.step(tokens, before)
            there, after = exact.step(tokens, tuple(part.double() for part in before))
            moved = max(float((a - b).abs().max()) for a, b in zip(state, after))
            assert moved <= checked.float32
            furthest = max(furthest, float((logits - there).abs().max()))
            before = state
    # The state that is read differs, too, so that the bound of the read-out alone need not hold to the digit.
    assert furthest <= checked.float32_logits + 100 * checked.float32


@given(some.integers(0, 2**32 - 1))
def test_a_read_out_in_float32_is_off_by_at_most_what_is_bounded(seed: int) -> None:
    """Linear, gelu, linear, norm and head, in float32 and float64, from features that are off themselves."""
    rng = np.random.default_rng(seed)
    narrow = np.float32

    def drawn(*shape: int) -> Any:
        return rng.normal(size=shape).astype(narrow)

    first, bias, out, weight, head, last = drawn(20, 9), drawn(20), drawn(12, 20), drawn(12), drawn(5, 12), drawn(5)
    x, off = rng.uniform(-1, 1, 9), np.full(9, 1e-6)
    near = (x + rng.uniform(-1, 1, 9) * 9e-7).astype(narrow)

    def run(features: Any, kind: type) -> tuple[Any, ...]:
        a = first.astype(kind) @ features + bias.astype(kind)
        gelu = torch.nn.functional.gelu(torch.from_numpy(a)).numpy()
        stream = out.astype(kind) @ gelu
        rms = np.sqrt((stream * stream).mean() + kind(1e-5))
        return a, gelu, stream, rms, head.astype(kind) @ (stream / rms * weight.astype(kind)) + last.astype(kind)

    exact, found = run(x, np.float64), run(near, narrow)
    inner = linear_error(first.astype(float), bias.astype(float), np.abs(x), off)
    hidden = gelu_error(np.abs(exact[0]), inner)
    streamed = linear_error(out.astype(float), np.zeros(12), np.abs(exact[1]), hidden)
    size, normed = normed_error(np.abs(exact[2]), streamed, float(exact[3]), weight.astype(float))
    logits = linear_error(head.astype(float), last.astype(float), size, normed)
    for bound, one, other in zip((inner, hidden, streamed, logits), (*exact[:3], exact[4]), (*found[:3], found[4])):
        assert (np.abs(one - other) <= bound).all()
    assert logits.max() < 1e-2


HOSTILE: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "a name that clears the screen": ({"model": "\x1b[2J\n\nlies"}, "what it calls its model is no name"),
    "a name of a million letters": ({"model": "m" * 10**6}, "what it calls its model is no name"),
    "a name that is none": ({"model": {"a": 1}}, "what it calls its model is no name"),
    "parts without end": ({"parts": 600}, "it has more parts than the network has columns"),
    "lists without end": (b"[" + b"[]," * 2**19 + b"[]]", "has more than 1,048,576 values"),
    "deep": (b"[" * 100_000, "is not a proof for"),
    "an enormous shape": ({"covers": {"shape": [2**62, 2**62], "data": ""}}, "is not a proof for"),
    "no number": ({"epsilon": float("nan")}, "epsilon nan should lie in"),
    "a task of a file": ({"task": "mine.py:Mine"}, "mine.py"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_proofs_are_refused_in_one_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, said = HOSTILE[case]
    told, _ = proof_of("parity by e88-gain")
    path = tmp_path / "x.proof"
    checkpoint.save_weights(path.with_suffix(".safetensors"), witness("parity by e88-gain")[1], {})
    if isinstance(change, bytes):
        path.write_bytes(change)
    else:
        if "parts" in change:
            change = {"parts": told["parts"] * change["parts"]}
        if "covers" in change:
            change = {"covers": [told["covers"][0] | {"centres": change["covers"]}]}
        path.write_text(json.dumps(told | change))
    assert main(["verify", str(path)]) in (1, 2)
    found = capsys.readouterr()
    assert len((found.out + found.err).splitlines()) == 1
    assert said in found.out + found.err
    assert len(found.out + found.err) < 1000


def test_tensors_that_lie_on_one_another_are_not_copied(tmp_path: Path) -> None:
    """Two thousand of 16 MB each, in a file of 16 MB."""
    each = {"dtype": "F32", "shape": [2**22], "data_offsets": [0, 2**24]}
    header = json.dumps({f"a{number}": each for number in range(2000)}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(2**24))
    with pytest.raises(Refused, match="holds fewer numbers than it says"):
        read_tensors(path)


def put_tensors(path: Path, shapes: dict[str, list[int]], data: bytes = b"") -> None:
    """A file whose tensors all lie at its begin, of as many bytes as their shapes say."""
    header = json.dumps({
        name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * abs(int(np.prod(shape, dtype=object)))]}
        for name, shape in shapes.items()
    }).encode()  # fmt: skip
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


@pytest.mark.parametrize("shape", [[2**40, 0], [0, 2**40], [-1], [-1, -4], [1.0], [True]])
def test_shapes_that_no_weights_have_are_refused(tmp_path: Path, shape: list[int]) -> None:
    """A side of 0 makes room for one without end, and one of -1 for a thousand copies of the same bytes."""
    put_tensors(tmp_path / "w.safetensors", {"a": shape}, bytes(64))
    with pytest.raises(Refused, match="a shape that no weights have"):
        read_tensors(tmp_path / "w.safetensors")


@pytest.mark.parametrize(("heads", "n", "tokens"), [(1, 2000, 2), (300, 80, 2), (1, 10, 8000)])
def test_networks_that_would_take_gigabytes_are_refused(heads: int, n: int, tokens: int) -> None:
    """A few kilobytes of weights name maps of gigabytes: each side is small, and their product is not."""
    wide = heads * n
    shapes = {"embedding.weight": (tokens, 1), "norms.0.weight": (1,), "mixers.0.project.weight": (3 * wide, 1),
              "mixers.0.decay.project.weight": (heads, 1), "mixers.0.beta.project.weight": (heads, 1),
              "mixers.0.out.weight": (1, wide)}  # fmt: skip
    tensors = {name: np.ones(shape) for name, shape in shapes.items()}
    with pytest.raises(Refused, match=r"more than can be checked|the task has 2"):
        NETWORKS["e88-gain"](tensors, 2)


def test_a_tensor_that_the_network_does_not_have_is_refused() -> None:
    """Weights of another network, which has this one inside, are not proved by it."""
    proof, tensors = proof_of("parity by tanh-rnn")
    more = tensors | {"rnn.weight_hh_l0_reverse": np.zeros((2, 2))}
    refused({**proof, "weights": hash_of(more)}, more, "no part of tanh-rnn")


def test_a_cover_that_a_thousand_parts_share_is_counted_a_thousand_times() -> None:
    proof, tensors = proof_of("s3 by reflections")
    cover = copy.deepcopy(proof["covers"][0])
    cover["next"]["data"] = "A" * 2**25
    refused({**proof, "covers": [cover], "parts": proof["parts"][:1] * 3}, tensors, "larger than can be checked")


def test_what_is_not_a_number_is_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    from statetrack.certificates.checker.network import Network, Reading

    proof, tensors = proof_of("parity by tanh-rnn")
    kind = NETWORKS[proof["network"]]
    monkeypatch.setattr(kind, "reading", lambda *_: Reading(float("nan"), float("nan")))
    assert issubclass(kind, Network)  # type: ignore[arg-type]
    refused(proof, tensors, "read-out may be wrong")


def test_weights_about_which_nothing_can_be_computed_stay_open() -> None:
    """Of a key of length 0 an interval cannot be divided: that is no error of certify."""
    task, model = witness("parity by e88-gain")
    none = copy.deepcopy(model)
    with torch.no_grad():
        for each in none.parameters():
            each.zero_()
    assert certify(task, none, seconds=1).outcome in (BROKEN, OPEN)
