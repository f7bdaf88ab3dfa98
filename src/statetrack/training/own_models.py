"""What a model of somebody's own is held to in training: that it never peeks, and that its failures bear its name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from statetrack.models import SequenceModel
from statetrack.models.custom import changes_in_training, is_ours, own_name
from statetrack.models.independence import check_independent
from statetrack.own_code import blaming
from statetrack.training.evaluate import GENERALISE, STREAM_TAIL, pass_rows
from statetrack.training.memory import ran_out_of_memory

TRIED = 2  # rows of a trial in training mode


def check_untrained(model: SequenceModel, inputs: int, length: int, streams: Sequence[int], batch: int) -> None:
    """Refuse one that peeks at the length that it would be trained on, in batches of that training, or at twice it, and
    see whether it changes in training: it may have parts that a short row does not use.
    """
    if not is_ours(model):
        _check(model, inputs, (length, 2 * length), streams, batch)
        ids = torch.arange(TRIED * length, device=_device(model)).reshape(TRIED, length) % inputs
        model.changing = changes_in_training(own_name(model), model, ids) or model.changing


def check_trained(model: SequenceModel, inputs: int, length: int, streams: Sequence[int]) -> None:
    """It may have learned to peek: look again, at every length that it is tested at, before there is a record."""
    if not is_ours(model):
        lengths = (length, *(times * length for times in GENERALISE))
        _check(model, inputs, lengths, streams)


def check_given(model: SequenceModel, inputs: int, lengths: Sequence[int], streams: Sequence[int]) -> None:
    """Of weights that are there: look at every length that they are tested at, before there is a number."""
    if not is_ours(model):
        _check(model, inputs, lengths, streams)


def _check(model: SequenceModel, inputs: int, lengths: Sequence[int], streams: Sequence[int], batch: int = 0) -> None:
    """In passes no larger than those that test it."""
    device, window = _device(model), STREAM_TAIL if streams else 0
    check_independent(model, inputs, lengths, window, lambda length: pass_rows(device, length, model.outputs), batch)


def _device(model: SequenceModel) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def blaming_own(model: SequenceModel, subject: str, when: str) -> AbstractContextManager[None]:
    """What goes wrong in it is said with its name; memory and the disk are not its fault."""

    def not_its_own(error: Exception) -> bool:
        return isinstance(error, OSError | MemoryError) or ran_out_of_memory(error)

    return nullcontext() if is_ours(model) else blaming(f"{subject} fails {when}", but=not_its_own)
