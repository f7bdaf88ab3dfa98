"""What every model is: token ids in, logits at every position out, and a state by which it can be run in pieces."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import BadInput, shortened
from statetrack.models.layers import Embedding, Linear, RMSNorm, per_row

# What is kept between steps: tensors whose first dimension is the batch. A model decides how many there are.
State = tuple[Tensor, ...]
Shape = tuple[int, ...]
Block = Callable[[nn.Module, nn.Module, Tensor, State, ops.Noise | None], tuple[Tensor, State]]
ReadOut = Callable[[nn.Module, nn.Module, Tensor], Tensor]
MOST_LAYERS = 1000
NO_ANSWER = -1


class SequenceModel(nn.Module):
    """ids (B, T) -> logits (B, T, outputs), causal: `forward`, `forward_from` in pieces and `step` by step are equal.

    A model gives `state_shapes` and `forward_from`; the rest follows.

    >>> from statetrack.models import model
    >>> parity = model("e88-gain-1l-small", inputs=2, outputs=2, seed=0)
    >>> ids = torch.tensor([[1, 0, 1]])
    >>> state = parity.initial_state(1)
    >>> first, state = parity.forward_from(ids[:, :2], state)
    >>> last, state = parity.step(ids[:, 2], state)
    >>> torch.allclose(torch.cat([first, last[:, None]], dim=1), parity(ids), atol=1e-6)
    True
    """

    # Whether a step takes constant memory, so that a stream may go on for ever (an MLP can, a transformer cannot).
    recurrent: bool = True
    # Whether its parameters may carry a dimension of replicas (see layers.py); otherwise replicas run in turn.
    foldable: bool = True
    # Whether noise on its state can be put on inside its scans: its forward_from then takes that as a third argument.
    takes_noise: bool = False
    # Whether a pass in training mode draws by chance or changes buffers; `models.check` finds it out.
    changing: bool = False
    # The model's name with the options that differ from their defaults; None where nobody named it.
    text: str | None = None

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        whole_numbers(inputs=inputs, outputs=outputs)
        self.inputs, self.outputs = inputs, outputs
        self.start: nn.ParameterList | None = None

    def folds(self, count: int) -> bool:
        """Whether so many replicas of it, on the device it is on, are to be one pass."""
        return self.foldable and count > 1

    def state_shapes(self) -> list[Shape]:
        """The shapes of the state's tensors for one row."""
        raise NotImplementedError(f"{type(self).__name__} does not say the shapes of its state")

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """ids (B, T) and the state before them -> logits (B, T, outputs) and the state after."""
        raise NotImplementedError(f"{type(self).__name__} cannot be run in pieces")

    def forward(self, ids: Tensor) -> Tensor:
        return self.forward_from(ids, self.initial_state(len(ids), ids.device))[0]

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """ids (B,) -> logits (B, outputs)."""
        logits, state = self.forward_from(ids.unsqueeze(1), state)
        return logits[:, 0], state

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        """Zeros, or the learned start, for each of `batch` rows."""
        shapes = self.state_shapes()
        if self.start is not None:
            learned = (per_row(start, len(shape), batch) for start, shape in zip(self.start, shapes))
            return tuple(start.expand(batch, *shape) for start, shape in zip(learned, shapes))
        own = next(self.parameters())
        dtype = torch.promote_types(own.dtype, torch.float32)
        return tuple(torch.zeros(batch, *shape, dtype=dtype, device=device or own.device) for shape in shapes)

    def learn_start(self) -> None:
        """Make the initial state a parameter, drawn from a normal distribution of deviation 1/2."""
        shapes = self.state_shapes()
        if not shapes or not self.recurrent:
            raise BadInput(
                f"{type(self).__name__} keeps no state whose start could be learned; leave out learned_start"
            )
        self.start = nn.ParameterList([nn.Parameter(0.5 * torch.randn(shape)) for shape in shapes])

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def state_size(self) -> int:
        """How many numbers are kept between steps, for one row."""
        return sum(math.prod(shape) for shape in self.state_shapes())

    def no_decay(self) -> set[str]:
        """Names of parameters that weight decay must leave alone.

        By one rule: all that are not matrices (A_log, dt_bias, norms, biases) and the learned start.
        """
        return {name for name, p in self.named_parameters() if p.dim() < 2 or name.startswith("start.")}


class Mixer(nn.Module):
    """One layer's work along time: x (B, T, dim) and its part of the state -> y (B, T, dim) and the part after."""

    # Whether torch.compile may be let loose on it: not on a loop over time, which it would write out step by step.
    compilable: bool = True
    # Whether its state is one tensor, and its forward takes the noise on that as a third argument.
    takes_noise: bool = False

    def state_shapes(self) -> list[Shape]:
        return []

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        raise NotImplementedError


class MatrixMixer(Mixer):
    """A mixer whose state is one square matrix per head."""

    def __init__(self, heads: int, n_state: int) -> None:
        super().__init__()
        self.heads, self.n_state = heads, n_state

    def state_shapes(self) -> list[Shape]:
        return [(self.heads, self.n_state, self.n_state)]


class Stack(SequenceModel):
    """Embedding, then x <- x + mixer(RMSNorm(x)) for each mixer, a final RMSNorm and a linear head."""

    def __init__(
        self, inputs: int, outputs: int, dim: int, mixers: Sequence[Mixer], learned_start: bool = False
    ) -> None:
        super().__init__(inputs, outputs)
        self.embedding = Embedding(inputs, dim)
        self.norms = nn.ModuleList([RMSNorm(dim) for _ in mixers])
        self.mixers = nn.ModuleList(mixers)
        self.final_norm = RMSNorm(dim)
        self.head = Linear(dim, outputs)
        self.block: Block = residual_block
        self.read_out: ReadOut = normed_head
        if learned_start:
            self.learn_start()

    def state_shapes(self) -> list[Shape]:
        return [shape for mixer in self.steps() for shape in mixer.state_shapes()]

    def steps(self) -> list[Mixer]:
        return cast(list[Mixer], list(self.mixers))

    def embed(self, ids: Tensor, state: State) -> Tensor:
        return self.embedding(ids)

    @property
    def takes_noise(self) -> bool:  # type: ignore[override]
        """Whether every layer's scan can put noise on its part of the state."""
        return all(mixer.takes_noise for mixer in self.steps())

    def forward_from(self, ids: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        """With noise, that on the first tensor of the state, every part of the state is moved once it was read."""
        x = self.embed(ids, state)
        after: list[Tensor] = []
        for norm, mixer in zip(self.norms, self.steps()):
            begin = len(after)
            before = state[begin : begin + len(mixer.state_shapes())]
            x, own = self.block(norm, mixer, x, before, None if noise is None else noise.of_tensor(begin))
            after.extend(own)
        return self.read_out(self.final_norm, self.head, x), tuple(after)

    def fuse(self) -> None:
        """Compile the block and the end, for a GPU: what stands around the scan becomes a few kernels instead of many.

        All layers share the compiled code, which is made at the first step.
        """
        if all(mixer.compilable for mixer in self.steps()):
            self.block, self.read_out = compiled_parts()


def answers_of(logits: Tensor) -> Tensor:
    """The class with the largest logit; NO_ANSWER where one is not a number, as after an overflow.

    >>> answers_of(torch.tensor([[0.0, 1.0], [0.0, float("nan")]])).tolist()
    [1, -1]
    """
    largest, classes = logits.max(-1)  # NaN is the largest of all here, so no second pass over the logits is needed
    return classes.masked_fill(largest.isnan(), NO_ANSWER)


def residual_block(
    norm: nn.Module, mixer: nn.Module, x: Tensor, state: State, noise: ops.Noise | None = None
) -> tuple[Tensor, State]:
    """x + mixer(RMSNorm(x)), and the state after."""
    y, own = mixer(norm(x), state) if noise is None else mixer(norm(x), state, noise)
    return x + y, own


def normed_head(norm: nn.Module, head: nn.Module, x: Tensor) -> Tensor:
    """The logits."""
    logits: Tensor = head(norm(x))
    return logits


@functools.cache
def compiled_parts() -> tuple[Block, ReadOut]:
    from torch import _dynamo

    ops.keep_out_compilers()
    # Products are in float32 on purpose.
    warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores for float32 matrix multiplication available")
    _dynamo.config.recompile_limit = 64  # a block has many forms: by model, by shape, with and without replicas
    return torch.compile(residual_block), torch.compile(normed_head)


def whole_numbers(**sizes: int) -> None:
    """Refuse a size that is not a whole number above 0, and layers that would be built for ever."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadInput(f"{name} must be a whole number above 0; got {shortened(value)}")
        if name == "layers" and value > MOST_LAYERS:
            raise BadInput(f"layers must be at most {MOST_LAYERS}; got {shortened(value)}")
