"""Our scans beside other projects' kernels on the same inputs: forward and backward, memory, and what comes out.

python -m benchmarks.peers DIR               all peers found in DIR
python -m benchmarks.peers DIR elman xma     these alone
python -m benchmarks.peers DIR --device cpu  tiny shapes; of use only where a peer runs on a CPU

DIR holds clones, or what `pip install --target` leaves, each in a folder of its own: the packages elman, xma, mamba_ssm
and fla, and what they need (einops for most). Each peer runs in a process of its own, so that one which refuses this
Triton or this GPU is named with its reason and the others go on. Their code is run as it lies there.

`ratio` is their time over ours. An error is the largest of |found - exact| / |exact| over the output and all gradients,
for the first rows, where exact is our readable loop in float64; `apart` is |theirs - ours| / |ours| of the outputs.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.gpu import GIB
from benchmarks.gpu import milliseconds as on_gpu
from statetrack import ops
from statetrack.errors import one_line

Leaves = dict[str, Tensor]
Scan = Callable[[Leaves], Tensor]
CHECKED = 4  # rows
SECONDS = 240  # of one peer: some try many settings of a kernel at the first call
WHOLE = "whole"  # of a leaf's name: it has no rows


@dataclass(frozen=True)
class Case:
    """One recurrence that both compute, and how each is called."""

    what: str
    module: str
    inputs: Callable[[tuple[int, ...], str, torch.dtype], Leaves]
    ours: Callable[[str | None], Scan]
    theirs: Callable[[Any], Scan]
    shape: tuple[int, ...] = (256, 1024, 16, 32)  # batch, steps, heads, N = V
    dtype: torch.dtype = torch.float32


def drawn(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> Leaves:
    """q and k of unit length, v, a decay in (0.3, 1), a rate in (0, 1)."""
    generator = torch.Generator(device).manual_seed(0)
    q, k, v = torch.randn(3, *shape, device=device, generator=generator)
    decay, beta = torch.rand(2, *shape[:3], device=device, generator=generator)
    sequence = {"q": F.normalize(q, dim=-1), "k": F.normalize(k, dim=-1), "v": v}
    return {name: tensor.to(dtype) for name, tensor in sequence.items()} | {"decay": 0.3 + 0.7 * decay, "beta": beta}


def e88_inputs(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> Leaves:
    """elman corrects by all of the error: there is no rate."""
    return {name: tensor for name, tensor in drawn(shape, device, dtype).items() if name != "beta"}


def e88_ours(kernel: str | None) -> Scan:
    return lambda x: ops.e88_scan(x["q"], x["k"], x["v"], x["decay"], torch.ones_like(x["decay"]), kernel=kernel)[0]


def e88_elman(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        q, k, v, decay = (x[name].transpose(0, 1) for name in ("q", "k", "v", "decay"))
        start = k.new_zeros(*k.shape[1:], v.shape[-1])
        out: Tensor = module.e88_triton(start, k, v, q, decay.to(k.dtype))[0]
        return out.transpose(0, 1)

    return scan


def m2rnn_inputs(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> Leaves:
    """W near the identity, the gate in (0, 1)."""
    heads, n = shape[2:]
    x = drawn(shape, device, dtype)
    noise = torch.randn(heads, n, n, device=device, generator=torch.Generator(device).manual_seed(1)) / (2 * n**0.5)
    weight = {WHOLE + " W": torch.eye(n, device=device) + noise}
    return {name: x[name] for name in ("q", "k", "v")} | {"f": x["beta"]} | weight


def m2rnn_ours(kernel: str | None) -> Scan:
    return lambda x: ops.m2rnn_scan(x["q"], x["k"], x["v"], x["f"], x[WHOLE + " W"], kernel=kernel)[0]


def m2rnn_xma(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        dtype = x["q"].dtype
        out: Tensor = module.m2rnn(x["q"], x["k"], x["v"], x[WHOLE + " W"].to(dtype), x["f"].to(dtype))[0]
        return out

    return scan


def ssd_inputs(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> Leaves:
    """x for every head, b and c for all of them together, a step dt in (0, 1), A in (-1, 0)."""
    x = drawn(shape, device, dtype)
    first = {"b": x["k"][:, :, 0].contiguous(), "c": x["q"][:, :, 0].contiguous()}
    A = -torch.linspace(0.05, 1, shape[2], device=device)
    return {"x": x["v"], "dt": x["beta"], **first, WHOLE + " A": A}


def ssd_ours(kernel: str | None) -> Scan:
    return lambda x: ops.ssd_scan(x["x"], x["dt"], x[WHOLE + " A"], x["b"], x["c"], kernel=kernel)[0]


def ssd_mamba(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        b, c = x["b"].unsqueeze(2), x["c"].unsqueeze(2)
        out: Tensor = module.mamba_chunk_scan_combined(x["x"], x["dt"], x[WHOLE + " A"], b, c, chunk_size=256)
        return out

    return scan


def gla_ours(kernel: str | None) -> Scan:
    def scan(x: Leaves) -> Tensor:
        ones = torch.ones_like(x["decay"])
        return ops.ssd_scan(x["v"], ones, None, x["k"], x["q"], decay=x["decay"], kernel=kernel)[0]

    return scan


def gla_fla(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        out: Tensor = module.chunk_simple_gla(x["q"], x["k"], x["v"], x["decay"].log(), scale=1.0)[0]
        return out

    return scan


def several_writes(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> Leaves:
    """k, v and a rate for each of two writes a step."""
    x, y = drawn(shape, device, dtype), drawn((shape[0], shape[1] * 2, *shape[2:]), device, dtype)
    pairs = {name: y[name].unflatten(1, (shape[1], 2)).contiguous() for name in ("k", "v", "beta")}
    return {"q": x["q"], "decay": x["decay"]} | pairs


def delta_ours(kernel: str | None) -> Scan:
    """The state decays before it is read and written to: our scan, which reads it before, does so at the rate b a."""

    def scan(x: Leaves) -> Tensor:
        k, v, beta = ((each if each.dim() > rank else each.unsqueeze(2)) for each, rank in
                      ((x["k"], 4), (x["v"], 4), (x["beta"], 3)))  # fmt: skip
        rates = torch.cat([beta[:, :, :1] * x["decay"].unsqueeze(2), beta[:, :, 1:]], dim=2)
        written = (beta.unsqueeze(-1) * v).to(v.dtype)
        return ops.e88_scan(x["q"], k, written, x["decay"], rates, nonlinearity="identity", kernel=kernel)[0]

    return scan


def delta_fla(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        log = x["decay"].log()
        out: Tensor = module.chunk_gated_delta_rule(x["q"], x["k"], x["v"], log, x["beta"], scale=1.0)[0]
        return out

    return scan


def product_fla(module: Any) -> Scan:
    def scan(x: Leaves) -> Tensor:
        k, v, beta = (x[name].flatten(1, 2) for name in ("k", "v", "beta"))
        log = x["decay"].log()
        out: Tensor = module.chunk_gated_delta_product(x["q"], k, v, log, beta, num_householder=2, scale=1.0)[0]
        return out

    return scan


HALF = torch.bfloat16
ELMAN, XMA, MAMBA = "elman.triton.e88_triton_backward", "xma.layers.m2rnn", "mamba_ssm.ops.triton.ssd_combined"
GLA, DELTA = "fla.ops.simple_gla.chunk", "fla.ops.gated_delta_rule.chunk"
PRODUCT = "fla.ops.gated_delta_product.chunk"
FEWER = (64, 1024, 16, 32)
CASES = {
    "elman": [
        Case("e88", ELMAN, e88_inputs, e88_ours, e88_elman),
        Case("e88", ELMAN, e88_inputs, e88_ours, e88_elman, dtype=HALF),
        Case("e88", ELMAN, e88_inputs, e88_ours, e88_elman, (16, 2048, 16, 32)),
    ],
    "xma": [
        Case("m2rnn", XMA, m2rnn_inputs, m2rnn_ours, m2rnn_xma),
        Case("m2rnn", XMA, m2rnn_inputs, m2rnn_ours, m2rnn_xma, dtype=HALF),
        Case("m2rnn", XMA, m2rnn_inputs, m2rnn_ours, m2rnn_xma, (64, 1024, 4, 16)),
    ],
    "mamba_ssm": [
        Case("ssd", MAMBA, ssd_inputs, ssd_ours, ssd_mamba, FEWER),
        Case("ssd", MAMBA, ssd_inputs, ssd_ours, ssd_mamba, FEWER, HALF),
    ],
    "fla": [
        Case("simple gla", GLA, e88_inputs, gla_ours, gla_fla, FEWER),
        Case("gated delta rule", DELTA, drawn, delta_ours, delta_fla, FEWER),
        Case("gated delta rule", DELTA, drawn, delta_ours, delta_fla, FEWER, HALF),
        Case("delta product of 2", PRODUCT, several_writes, delta_ours, product_fla, FEWER),
    ],
}
SMALL = (4, 32, 2, 16)


def put_on_path(folder: Path) -> None:
    """What lies in the folder, in its sub-folders, and in their src; behind what is installed, but for the peers."""
    inner = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    sys.path.extend(str(path) for each in (folder, *inner) for path in (each, each / "src") if path.is_dir())


def load(name: str) -> Any:
    """A module of a peer. Where its package needs at import what the kernel does not (an extension that is not built),
    the module is loaded without running the packages above it.
    """
    try:
        return importlib.import_module(name)
    except Exception as first:
        top = name.split(".")[0]
        for each in [each for each in sys.modules if each.split(".")[0] == top]:
            del sys.modules[each]
        paths = {entry: Path(entry).joinpath(*name.split(".")) for entry in sys.path}
        places = [Path(entry) for entry, path in paths.items() if path.is_dir() or path.with_suffix(".py").is_file()]
        if not places:
            raise
        for parent in ancestors(name):
            bare = types.ModuleType(parent)
            bare.__path__ = [str(places[0].joinpath(*parent.split(".")))]
            sys.modules[parent] = bare
        try:
            module = importlib.import_module(name)
        except Exception as second:
            raise ImportError(f"{said(first)}; without its package: {said(second)}") from second
        print(f"  {top} itself cannot be imported ({said(first)}); {name} can", flush=True)
        return module


def ancestors(name: str) -> list[str]:
    """
    >>> ancestors("a.b.c")
    ['a', 'a.b']
    """
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def said(error: BaseException) -> str:
    return one_line(error)[:160]


def found(scan: Scan, leaves: Leaves, weights: Tensor) -> list[Tensor]:
    """The output, and the gradient in every leaf."""
    out = scan(leaves)
    return [out.detach(), *torch.autograd.grad(out, list(leaves.values()), weights.to(out.dtype))]


def few(leaves: Leaves, dtype: torch.dtype | None = None) -> Leaves:
    """The first rows, as leaves of their own."""
    cut = {name: x if name.startswith(WHOLE) else x[:CHECKED] for name, x in leaves.items()}
    return {name: x.detach().to(dtype or x.dtype, copy=True).requires_grad_() for name, x in cut.items()}


def error(some: list[Tensor], exact: list[Tensor]) -> float:
    return max(apart(mine, wanted) for mine, wanted in zip(some, exact))


def apart(mine: Tensor, wanted: Tensor) -> float:
    return float((mine.double() - wanted.double()).norm() / wanted.double().norm())


def timed(scan: Scan, leaves: Leaves, device: str) -> tuple[float, float]:
    """Milliseconds of forward and backward, and GiB."""
    weights = torch.randn_like(next(leaves[name] for name in ("v", "x") if name in leaves)[:, :, :1])

    def work() -> None:
        out = scan(leaves)
        torch.autograd.grad(out, list(leaves.values()), weights.to(out.dtype).expand(out.shape).contiguous())

    if device == "cuda":
        work()  # kernels are compiled and chosen
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return on_gpu(work, tries=5), torch.cuda.max_memory_allocated() / GIB
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return 1000 * median(seconds), 0.0


def compare(case: Case, device: str) -> Iterator[str]:
    """One line of the table."""
    shape = case.shape if device == "cuda" else SMALL
    leaves = case.inputs(shape, device, case.dtype)
    if case.dtype == HALF:
        leaves = {name: x.to(HALF).to(x.dtype) for name, x in leaves.items()}  # what both can hold
    leaves = {name: x.contiguous().requires_grad_() for name, x in leaves.items()}
    ours, theirs = case.ours(None), case.theirs(load(case.module))
    some = few(leaves)
    like = some["v" if "v" in some else "x"]
    weights = torch.randn(ours(some).shape, device=device, generator=torch.Generator(device).manual_seed(2)).to(like)
    other = found(theirs, few(leaves), weights)
    mine = found(ours, some, weights)
    exact = found(case.ours("reference"), few(leaves, torch.float64), weights)
    errors = error(mine, exact), error(other, exact)
    took, gib = timed(ours, leaves, device)
    theirs_took, theirs_gib = timed(theirs, leaves, device)
    what = f"{case.what} {'x'.join(map(str, shape))} {'bf16' if case.dtype == HALF else 'fp32'}"
    yield (
        f"  {what:<38}{took:>9.2f}{theirs_took:>9.2f}{theirs_took / took:>7.2f}{gib:>8.2f}{theirs_gib:>8.2f}"
        f"{errors[0]:>10.1e}{errors[1]:>10.1e}{apart(other[0], mine[0]):>10.1e}"
    )


def one_peer(peer: str, folder: Path, device: str) -> int:
    """All cases of a peer; 1 where one was refused."""
    put_on_path(folder)
    refused = 0
    for case in CASES[peer]:
        try:
            for line in compare(case, device):
                print(line, flush=True)
        except Exception as problem:  # another project's code may raise anything
            print(f"  {case.what}: {peer} refuses: {said(problem)}", flush=True)
            refused = 1
        if device == "cuda":
            torch.cuda.empty_cache()
    return refused


def all_peers(peers: list[str], folder: Path, device: str) -> int:
    """Each in a process of its own. The exit code is 0 where at least one could be compared."""
    print(f"{torch.cuda.get_device_name() if device == 'cuda' else 'cpu'}, torch {torch.__version__}")
    heads = ("ours ms", "theirs", "ratio", "GiB", "theirs", "error", "theirs", "apart")
    widths = (9, 9, 7, 8, 8, 10, 10, 10)
    what = "forward+backward, B x T x H x N"
    print(f"  {what:<38}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths)))
    codes = []
    for peer in peers:
        print(peer, flush=True)
        command = [sys.executable, "-m", "benchmarks.peers", str(folder), peer, "--device", device, "--alone"]
        try:
            code = subprocess.run(command, cwd=Path(__file__).parent.parent, timeout=SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            code = 1
            print(f"  {peer}: given up after {SECONDS} seconds")
        if code not in (0, 1):
            print(f"  {peer}: its process ended with code {code}")
        codes.append(code)
    return 0 if 0 in codes else 1


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description="Our scans beside other projects' kernels.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="clones or installed packages, each in a folder")
    parser.add_argument("peers", nargs="*", help=f"which: {', '.join(CASES)}; all if none is named")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    if unknown := [peer for peer in asked.peers if peer not in CASES]:
        parser.exit(2, f"no peer {', '.join(unknown)}; there are: {', '.join(CASES)}\n")
    if not asked.folder.is_dir():
        parser.exit(2, f"{asked.folder} is no folder\n")
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.exit(2, "benchmarks.peers needs a CUDA device; there is none here\n")
    if asked.alone:
        return one_peer(asked.peers[0], asked.folder, asked.device)
    return all_peers(asked.peers or list(CASES), asked.folder.absolute(), asked.device)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
