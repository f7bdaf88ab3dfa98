"""Each architecture against its equations, written here as plain loops over time, rows and heads in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from statetrack.errors import BadInput
from statetrack.models import SequenceModel, model

INPUTS, OUTPUTS, ROWS, STEPS, HEADS, N, DIM = 4, 3, 2, 7, 2, 3, 6
SMALL = {"heads": HEADS, "n_state": N, "dim": DIM}


def numbers(subject: SequenceModel) -> dict[str, np.ndarray]:
    return {name: p.detach().double().numpy() for name, p in subject.named_parameters()}


def perturbed(name: str, **options: object) -> SequenceModel:
    """A model in float64 whose every weight has moved away from its start (no norm of one, no bias of zero)."""
    subject = model(name, inputs=INPUTS, outputs=OUTPUTS, seed=3, **options).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in subject.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return subject


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def unit(x: np.ndarray) -> np.ndarray:
    return x / (np.sqrt((x * x).sum()) + 1e-6)


def rms(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean() + 1e-5) * weight


def fading(w: dict[str, np.ndarray], u: np.ndarray, head: int, at: str) -> float:
    softplus = np.log1p(np.exp(w[f"{at}.project.weight"][head] @ u + w[f"{at}.dt_bias"][head]))
    return float(np.exp(-np.exp(w[f"{at}.A_log"][head]) * softplus))


def rate(w: dict[str, np.ndarray], u: np.ndarray, i: int, at: str, low: float, high: float) -> float:
    return low + (high - low) * float(sigmoid(w[f"{at}.project.weight"][i] @ u + w[f"{at}.project.bias"][i]))


def stack(w: dict[str, np.ndarray], ids: np.ndarray, layer) -> np.ndarray:
    """One block around layer(u, S, head) -> (output of the head, S), then the final norm and the head."""
    logits = np.zeros((*ids.shape, OUTPUTS))
    for row in range(len(ids)):
        S = [np.zeros((N, N)) for _ in range(HEADS)]
        for t, token in enumerate(ids[row]):
            x = w["embedding.weight"][token]
            u = rms(x, w["norms.0.weight"])
            outputs = []
            for head in range(HEADS):
                out, S[head] = layer(u, S[head], head)
                outputs.append(out)
            x = x + w["mixers.0.out.weight"] @ np.concatenate(outputs)
            logits[row, t] = w["head.weight"] @ rms(x, w["final_norm.weight"]) + w["head.bias"]
    return logits


def part(w: dict[str, np.ndarray], name: str, u: np.ndarray, index: int, head: int) -> np.ndarray:
    """The index-th piece of a projection that a head owns: pieces lie one after another, heads within a piece."""
    begin = (index * HEADS + head) * N
    return w[f"mixers.0.{name}.weight"][begin : begin + N] @ u


def agree(subject: SequenceModel, expected) -> None:
    ids = torch.randint(INPUTS, (ROWS, STEPS), generator=torch.Generator().manual_seed(1))
    actual = subject(ids).detach().numpy()
    assert np.abs(actual - expected(ids.numpy())).max() < 1e-10


@pytest.mark.parametrize("form", ["", "-published", "-gain"])
@pytest.mark.parametrize("end", ["", "-notanh"])
def test_e88(form: str, end: str) -> None:
    subject = perturbed(f"e88{form}-1l-small{end}", **SMALL)
    w = numbers(subject)

    def layer(u, S, head):
        q, k, v = (silu(part(w, "project", u, i, head)) for i in range(3))
        q, k = unit(q), unit(k)
        if form == "-gain":
            decay, beta = rate(w, u, head, "mixers.0.decay", 0, 2), rate(w, u, head, "mixers.0.beta", 0, 4)
        else:
            decay, beta = fading(w, u, head, "mixers.0.decay"), 1.0 if form == "-published" else 0.0
        Z = decay * S + np.outer(k, v - beta * (S.T @ k))
        S = Z if end else np.tanh(Z)
        return S.T @ q, S

    agree(subject, lambda ids: stack(w, ids, layer))


DELTA = [
    ("deltanet", 1, False, 1),
    ("deltanet-neg", 2, False, 1),
    ("gated-deltanet", 1, True, 1),
    ("gated-deltanet-neg", 2, True, 1),
    ("deltaproduct-2", 2, False, 2),
    ("deltaproduct-3", 2, False, 3),
    ("deltaproduct-4", 2, False, 4),
]


@pytest.mark.parametrize(("name", "top", "gated", "reflections"), DELTA)
def test_deltanets(name: str, top: float, gated: bool, reflections: int) -> None:
    subject = perturbed(name, **SMALL)
    w = numbers(subject)

    def layer(u, S, head):
        q = unit(silu(part(w, "query", u, 0, head)))
        S = fading(w, u, head, "mixers.0.gate") * S if gated else S
        for j in range(reflections):
            k = unit(silu(part(w, "project", u, j, head)))
            v = silu(part(w, "project", u, reflections + j, head))
            b = rate(w, u, j * HEADS + head, "mixers.0.rate", 0, top)
            S = (np.eye(N) - b * np.outer(k, k)) @ S + b * np.outer(k, v)
        return S.T @ q, S

    agree(subject, lambda ids: stack(w, ids, layer))


def test_m2rnn() -> None:
    subject = perturbed("m2rnn", **SMALL)
    w = numbers(subject)

    def layer(u, H, head):
        q, k, v = (silu(part(w, "project", u, i, head)) for i in range(3))
        f = rate(w, u, head, "mixers.0.forget", 0, 1)
        Z = np.tanh(H @ w["mixers.0.W"][head] + np.outer(unit(k), v))
        H = f * H + (1 - f) * Z
        return H.T @ unit(q) + w["mixers.0.w_r"][head] * v, H

    agree(subject, lambda ids: stack(w, ids, layer))


@pytest.mark.parametrize("reflections", [2, 4])
@pytest.mark.parametrize("tanh", [True, False])
@pytest.mark.parametrize("learned_start", [True, False])
def test_reflections_with_gain(reflections: int, tanh: bool, learned_start: bool) -> None:
    subject = perturbed(f"e88-gain-r{reflections}", tanh=tanh, learned_start=learned_start, hidden=5, **SMALL)
    w = numbers(subject)

    def logits_of(ids):
        logits = np.zeros((*ids.shape, OUTPUTS))
        for row in range(len(ids)):
            eye = 0.9 * (2 * np.eye(N) - 1)
            S = [w["start.0"][head] if learned_start else eye for head in range(HEADS)]
            for t, token in enumerate(ids[row]):
                x = w["embedding.weight"][token]
                u = rms(x, w["norms.0.weight"])
                for head in range(HEADS):
                    for j in range(reflections):
                        k = unit(part(w, "keys", u, j, head))
                        b = rate(w, u, j * HEADS + head, "mixers.0.rate", 0, 2)
                        S[head] = (np.eye(N) - b * np.outer(k, k)) @ S[head]
                    if tanh:
                        S[head] = np.tanh(rate(w, u, head, "mixers.0.gain", 1, 2) * S[head])
                # Row by row of S, the heads side by side within a row.
                everything = np.concatenate([S[head][i] for i in range(N) for head in range(HEADS)])
                inside = torch.tensor(w["mixers.0.read.weight"] @ everything + w["mixers.0.read.bias"])
                inside = torch.nn.functional.gelu(inside).numpy()
                x = x + w["mixers.0.out.weight"] @ inside + w["mixers.0.out.bias"]
                logits[row, t] = w["head.weight"] @ rms(x, w["final_norm.weight"]) + w["head.bias"]
        return logits

    agree(subject, logits_of)


@pytest.mark.parametrize("name", ["linear-rnn", "linear-rnn-nobias"])
def test_linear_rnn(name: str) -> None:
    subject = perturbed(name, hidden=5)
    w = numbers(subject)
    table = w["embedding.weight"] if name == "linear-rnn" else np.concatenate([np.zeros((1, 5)), w["embedding.weight"]])

    def logits_of(ids):
        logits = np.zeros((*ids.shape, OUTPUTS))
        for row in range(len(ids)):
            h = np.zeros(5)
            for t, token in enumerate(ids[row]):
                h = w["A"] @ h + table[token]
                logits[row, t] = w["head.weight"] @ h + w["head.bias"]
        return logits

    agree(subject, logits_of)


def test_mamba2_with_negative_eigenvalues_differs_in_the_decay_alone() -> None:
    options = {"layers": 1, "d_model": 4, "d_state": 3, "head_dim": 4}
    subject = perturbed("mamba2-4l-neg", **options)
    w = {name.removeprefix("mixers.0."): value for name, value in numbers(subject).items()}
    inner, heads = 8, 2

    def logits_of(ids):
        logits = np.zeros((*ids.shape, OUTPUTS))
        for row in range(len(ids)):
            window = np.zeros((4, inner + 6))
            h = np.zeros((heads, 4, 3))
            for t, token in enumerate(ids[row]):
                x = w["embedding.weight"][token]
                z, xBC, dt = np.split(w["in_proj.weight"] @ rms(x, w["norms.0.weight"]), [inner, 2 * inner + 6])
                window = np.concatenate([window[1:], xBC[None]])
                mixed = silu((w["conv.weight"].T * window).sum(0) + w["conv.bias"])
                value, B, C = mixed[:inner].reshape(heads, 4), mixed[inner : inner + 3], mixed[inner + 3 :]
                dt = np.log1p(np.exp(dt + w["dt_bias"]))
                y = np.zeros((heads, 4))
                for head in range(heads):
                    decay = 2 * np.exp(-dt[head] * np.exp(w["A_log"][head])) - 1
                    h[head] = decay * h[head] + dt[head] * np.outer(value[head], B)
                    y[head] = h[head] @ C + w["D"][head] * value[head]
                x = x + w["out_proj.weight"] @ rms(y.reshape(-1) * silu(z), w["norm.weight"])
                logits[row, t] = w["head.weight"] @ rms(x, w["final_norm.weight"]) + w["head.bias"]
        return logits

    agree(subject, logits_of)


def test_gain_starts_near_its_bistable_point() -> None:
    mixer = model("e88-gain-1l", inputs=2, outputs=2).mixers[0]
    nothing = torch.zeros(1, 1, 128)
    assert torch.allclose(mixer.decay(nothing), torch.full((1, 1, 16), 1.7616), atol=1e-3)
    assert torch.allclose(mixer.beta(nothing), torch.full((1, 1, 16), 2.0))


def test_initial_decays_follow_the_published_ranges() -> None:
    mixer = model("e88-1l", inputs=2, outputs=2, seed=0, heads=4000, n_state=1, dim=4).mixers[0]
    A, dt = mixer.decay.A_log.exp(), torch.nn.functional.softplus(mixer.decay.dt_bias)
    assert 0 < A.min() < 0.1
    assert 15.9 < A.max() <= 16
    assert abs(float(A.detach().mean()) - 8) < 0.3
    assert 1e-3 <= float(dt.detach().min()) < 1.1e-3
    assert 0.09 < float(dt.detach().max()) <= 0.1001
    assert abs(float(dt.detach().log().mean()) - np.log(0.01)) < 0.1


def test_reflections_begin_at_the_rate_and_the_gain_that_are_asked_for() -> None:
    """b is 2 sigmoid(W x + bias), a is 1 + sigmoid(W x + bias): over many tokens they scatter around their start."""
    import statetrack as st

    for gain in (1.5, 1.9):
        mixer = st.model("e88-gain-r2", inputs=200, outputs=2, gain=gain).mixers[0]
        assert torch.allclose(1 + torch.sigmoid(mixer.gain.project.bias), torch.tensor(gain))
    with pytest.raises(st.BadInput, match="between 1 and 2"):
        st.model("e88-gain-r2", inputs=2, outputs=2, gain=1.0)

    for rate in (1.0, 1.75):
        mixer = st.model("e88-gain-r2", inputs=200, outputs=2, rate=rate).mixers[0]
        assert torch.allclose(2 * torch.sigmoid(mixer.rate.project.bias), torch.tensor(rate))
    with pytest.raises(st.BadInput, match="between 0 and 2"):
        st.model("e88-gain-r2", inputs=2, outputs=2, rate=2.0)


def test_the_form_with_gain_begins_where_it_is_asked_to_and_as_before_where_it_is_not() -> None:
    usual = model("e88-gain-1l", inputs=2, outputs=2, seed=0)
    asked = model("e88-gain-1l", inputs=2, outputs=2, seed=0, gain=0.75, rate=1)
    assert usual.text == "e88-gain-1l"
    x = torch.randn(3, 5, 128)
    torch.testing.assert_close(asked.mixers[0].decay(x), torch.full((3, 5, 16), 0.75))
    torch.testing.assert_close(asked.mixers[0].beta(x), torch.full((3, 5, 16), 1.0))
    changed = {name for name, p in usual.named_parameters() if not torch.equal(p, asked.get_parameter(name))}
    rate = {f"mixers.0.{each}.project.weight" for each in ("decay", "beta")}
    assert rate <= changed <= rate | {name.replace("weight", "bias") for name in rate}  # all else is drawn as before


def test_without_tanh_it_can_begin_where_nothing_explodes() -> None:
    ids = torch.randint(2, (2, 1024), generator=torch.Generator().manual_seed(0))
    usual = model("e88-gain-1l-notanh", inputs=2, outputs=2, seed=0)
    assert not usual(ids).isfinite().all()
    calm = model("e88-gain-1l-notanh[gain=1,rate=1]", inputs=2, outputs=2, seed=0)
    _, state = calm.forward_from(ids, calm.initial_state(2))
    assert state[0].abs().max() < 10
    calm(ids).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in calm.parameters())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("e88-1l[gain=1]", "gain=1 is where the form with gain begins; this one is the form 'document'"),
        ("e88-gain-1l[gain=2]", "gain=2 should lie between 0 and 2"),
        ("e88-gain-1l[rate=0]", "rate=0 should lie between 0 and 4"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        model(name, inputs=2, outputs=2)
