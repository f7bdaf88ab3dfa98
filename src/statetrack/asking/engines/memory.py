"""What a model remembers of several dialogues at once, so that every token is processed once.

All memories do the same: `feed` takes the next tokens of every row and gives the logits after each row's last token,
`cut` forgets the end of rows, `keep` drops rows. `ResentMemory` keeps nothing; the others are tested against it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer, LinearAttentionLayer

Rows = Sequence[Sequence[int]]
MARKS = 3  # states that are remembered of a row


class GrowingLayer(DynamicLayer):
    """Keys and values in a buffer that doubles when it is full: a new token does not copy all that came before."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states[..., :0, :], value_states[..., :0, :]
            self._room: list[Tensor] = [self.keys, self.values]
        used, added = self.keys.shape[-2], key_states.shape[-2]
        for slot, (now, new) in enumerate([(self.keys, key_states), (self.values, value_states)]):
            room = self._room[slot]
            if now.data_ptr() != room.data_ptr() or used + added > room.shape[-2]:
                room = now.new_empty((*now.shape[:-2], 2 * (used + added), now.shape[-1]))
                room[..., :used, :] = now
                self._room[slot] = room
            room[..., used : used + added, :] = new
        self.keys, self.values = (room[..., : used + added, :] for room in self._room)
        return self.keys, self.values


class ResentMemory:
    """No memory: all tokens of all rows go through the model each time."""

    def __init__(self, model: Any, rows: int) -> None:
        self.model = model
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.processed = 0

    def feed(self, new: Rows) -> Tensor:
        self.tokens = [[*old, *more] for old, more in zip(self.tokens, new)]
        logits = []
        for row in self.tokens:
            ids = torch.tensor([row], device=self.model.device)
            logits.append(self.model(input_ids=ids, use_cache=False).logits[0, -1])
            self.processed += len(row)
        return torch.stack(logits)

    def cut(self, lengths: Sequence[int]) -> None:
        self.tokens = [row[:length] for row, length in zip(self.tokens, lengths)]

    def keep(self, rows: Sequence[int]) -> None:
        self.tokens = [self.tokens[row] for row in rows]


class AttentionMemory(ResentMemory):
    """Keys and values of all rows in one cache of slots. A slot that a row does not use is masked.

    Rows differ in length, replies too. So new tokens are padded on the right, each token is given its own position, and
    a row's mask says which slots hold its tokens: padding, and tokens that were cut, stay behind as masked slots.
    """

    def __init__(self, model: Any, rows: int) -> None:
        super().__init__(model, rows)
        self.cache = Cache(layer_class_to_replicate=GrowingLayer)
        self.used = torch.zeros((rows, 0), dtype=torch.bool, device=model.device)

    def feed(self, new: Rows) -> Tensor:
        if not self.used.shape[1] and len(new) > 1:
            new = self._feed_shared(new)
        width = max(map(len, new))
        ids = torch.zeros((len(new), width), dtype=torch.long)
        positions, real = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, (old, more) in enumerate(zip(self.tokens, new)):
            ids[row, : len(more)] = torch.tensor(more, dtype=torch.long)
            positions[row, : len(more)] = torch.arange(len(old), len(old) + len(more))
            real[row, : len(more)] = True
        logits = self._forward(ids, positions, real, [max(0, len(more) - 1) for more in new])
        self.tokens = [[*old, *more] for old, more in zip(self.tokens, new)]
        self.processed += sum(map(len, new))
        return logits

    def _feed_shared(self, new: Rows) -> Rows:
        """What all rows begin with goes through once; at least one token is left for each."""
        shared = next((n for n, column in enumerate(zip(*new)) if len(set(column)) > 1), min(map(len, new)))
        shared = min(shared, min(map(len, new)) - 1)
        if shared < 1:
            return new
        ids = torch.tensor([new[0][:shared]])
        self.used = self.used[:1]
        self._forward(ids, torch.arange(shared)[None], torch.ones_like(ids, dtype=torch.bool), [shared - 1])
        for layer in self.cache.layers:
            layer.batch_repeat_interleave(len(new))
        self.used = self.used.repeat(len(new), 1)
        self.tokens = [list(row[:shared]) for row in new]
        self.processed += shared
        return [row[shared:] for row in new]

    def _forward(self, ids: Tensor, positions: Tensor, real: Tensor, last: list[int]) -> Tensor:
        device = self.model.device
        self.used = torch.cat([self.used, real.to(device)], dim=1)
        wanted = sorted(set(last))  # the head is the costliest part, so only the rows' last tokens go through it
        out = self.model(
            input_ids=ids.to(device),
            attention_mask=None if bool(self.used.all()) else self.used.long(),  # without gaps causality is all
            position_ids=positions.to(device),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=torch.tensor(wanted, device=device),
        )
        return out.logits[torch.arange(len(last)), [wanted.index(place) for place in last]]

    def cut(self, lengths: Sequence[int]) -> None:
        surplus = [len(row) - length for row, length in zip(self.tokens, lengths)]
        if len(surplus) == 1 and surplus[0]:  # a single row has no gaps, and keeps none
            for layer in self.cache.layers:
                layer.crop(-surplus[0])
            self.used = self.used[:, : -surplus[0]]
        elif any(surplus):
            rank = self.used.cumsum(1)
            self.used &= rank <= torch.tensor(lengths, device=rank.device)[:, None]
        super().cut(lengths)

    def keep(self, rows: Sequence[int]) -> None:
        super().keep(rows)
        chosen = torch.tensor(list(rows), device=self.used.device)
        for layer in self.cache.layers:
            layer.batch_select_indices(chosen)
        self.used = self.used[chosen]
        if len(rows) == 1 and not bool(self.used.all()):
            self._close_gaps()

    def _close_gaps(self) -> None:
        """A row that is left alone gets rid of its masked slots."""
        slots = self.used[0].nonzero()[:, 0]
        for layer in self.cache.layers:
            layer.keys, layer.values = layer.keys[..., slots, :], layer.values[..., slots, :]
        self.used = self.used[:, slots]


class SingleRowMemory:
    """Each row in a memory of its own, for models that cannot bear gaps between a row's slots (sliding windows)."""

    def __init__(self, model: Any, rows: int) -> None:
        self.rows = [AttentionMemory(model, 1) for _ in range(rows)]
        self.dropped = 0

    @property
    def tokens(self) -> list[list[int]]:
        return [row.tokens[0] for row in self.rows]

    @property
    def processed(self) -> int:
        return self.dropped + sum(row.processed for row in self.rows)

    def feed(self, new: Rows) -> Tensor:
        fed = [row.feed([more])[0] if more else None for row, more in zip(self.rows, new)]
        some = next(row_logits for row_logits in fed if row_logits is not None)
        return torch.stack([torch.zeros_like(some) if row_logits is None else row_logits for row_logits in fed])

    def cut(self, lengths: Sequence[int]) -> None:
        for row, length in zip(self.rows, lengths):
            row.cut([length])

    def keep(self, rows: Sequence[int]) -> None:
        total = self.processed
        self.rows = [self.rows[row] for row in rows]
        self.dropped += total - self.processed


class RecurrentMemory(ResentMemory):
    """The recurrent state of each row.

    A state cannot be cut, so it is remembered after every feed of several tokens, which is where a prompt ends; single
    tokens are those of a reply.
    """

    def __init__(self, model: Any, rows: int) -> None:
        super().__init__(model, rows)
        self.cache = DynamicCache(config=model.config)
        self.now: list[list[Tensor]] = [[] for _ in range(rows)]
        self.marks: list[dict[int, list[Tensor]]] = [{} for _ in range(rows)]  # states by number of tokens

    def feed(self, new: Rows) -> Tensor:
        logits: list[Tensor | None] = [None] * len(new)
        for alike in sorted({(len(more), not old) for more, old in zip(new, self.tokens) if more}):
            rows = [row for row, more in enumerate(new) if (len(more), not self.tokens[row]) == alike]
            cache = self._gathered(rows)
            ids = torch.tensor([list(new[row]) for row in rows], device=self.model.device)
            out = self.model(input_ids=ids, cache_params=cache, use_cache=True, logits_to_keep=1)
            for place, row in enumerate(rows):
                logits[row] = out.logits[place, -1]
                self.tokens[row] = [*self.tokens[row], *new[row]]
                self.now[row] = [slots[key][place : place + 1].clone() for slots, key in _slots(cache)]
                if len(new[row]) > 1:
                    self.marks[row] = dict([*self.marks[row].items(), (len(self.tokens[row]), self.now[row])][-MARKS:])
            self.cache = cache
            self.processed += ids.numel()
        some = next(row_logits for row_logits in logits if row_logits is not None)
        return torch.stack([torch.zeros_like(some) if row_logits is None else row_logits for row_logits in logits])

    def _gathered(self, rows: list[int]) -> Any:
        """One cache with the states of these rows."""
        if not self.tokens[rows[0]]:
            return DynamicCache(config=self.model.config)
        cache = copy.deepcopy(self.cache)
        for (slots, key), states in zip(_slots(cache), zip(*(self.now[row] for row in rows))):
            slots[key] = torch.cat(states)
        return cache

    def cut(self, lengths: Sequence[int]) -> None:
        """Back to the last remembered state within each length; what lies between has to be fed again."""
        for row, length in enumerate(lengths):
            if len(self.tokens[row]) > length:
                self.marks[row] = {mark: state for mark, state in self.marks[row].items() if mark <= length}
                at = max(self.marks[row], default=0)
                self.now[row] = self.marks[row].get(at, [])
                self.tokens[row] = self.tokens[row][:at]

    def keep(self, rows: Sequence[int]) -> None:
        super().keep(rows)
        self.now = [self.now[row] for row in rows]
        self.marks = [self.marks[row] for row in rows]


def _slots(cache: Any) -> Iterator[tuple[dict[Any, Tensor], Any]]:
    """Where a cache holds its states: dictionaries, each with a key."""
    for layer in cache.layers:
        for slots in (layer.conv_states, layer.recurrent_states):
            yield from ((slots, key) for key, state in slots.items() if state is not None)


def memory_for(model: Any) -> type[Any]:
    """The memory that suits a model: by the kinds of layers that transformers itself caches for it."""
    layers = {type(layer) for layer in DynamicCache(config=model.config).layers}
    if layers == {DynamicLayer}:
        return AttentionMemory
    if layers == {LinearAttentionLayer}:
        return RecurrentMemory
    if all(issubclass(layer, DynamicLayer) and not issubclass(layer, LinearAttentionLayer) for layer in layers):
        return SingleRowMemory
    return ResentMemory
