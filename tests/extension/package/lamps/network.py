"""The network that the model's line names. It is imported, and torch with it, when the model is built."""

import torch
from torch import Tensor


class Glow(torch.nn.Module):
    """h <- tanh(W h + U x + b), and all of h is read out."""

    def __init__(self, inputs: int, outputs: int, width: int = 32) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(inputs, width)
        self.cell = torch.nn.RNN(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, outputs)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) ids -> (B, T, outputs) logits
        return self.forward_from(ids, self.initial_state(len(ids), ids.device))[0]

    def initial_state(self, batch: int, device: torch.device | None = None) -> tuple[Tensor, ...]:
        return (torch.zeros(batch, self.cell.hidden_size, device=device),)

    def forward_from(self, ids: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        y, last = self.cell(self.table(ids), state[0].unsqueeze(0))
        return self.head(y), (last[0],)
