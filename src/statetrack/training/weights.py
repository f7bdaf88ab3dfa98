"""From the name of a model to the model, and from a folder of results back to the trained one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from statetrack.errors import BadInput
from statetrack.models import SequenceModel, trusted_model
from statetrack.models.build import read_options
from statetrack.models.catalogue import entry
from statetrack.models.custom import as_model, own_name
from statetrack.models.matching import Match, matched
from statetrack.models.sequence import Shape
from statetrack.own_code import pinned
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.tasks import Task, trusted_task
from statetrack.training import checkpoint


def built(model_or_name: nn.Module | str, the_task: Task, seed: int) -> SequenceModel:
    """The model for this task: a name with options, `e88-gain-r2[learned_start=true]`, or a module built before.
    Code that the name stands for is run only where `statetrack.trust` allows it: the name may come from a record.
    """
    if isinstance(model_or_name, nn.Module):
        return as_model(model_or_name, own_name(model_or_name), the_task.inputs, the_task.outputs)
    if not isinstance(model_or_name, str):
        raise BadInput(f"a model is a name or a torch.nn.Module, not a {type(model_or_name).__name__}")
    name, options = read_options(model_or_name)
    return trusted_model(name, inputs=the_task.inputs, outputs=the_task.outputs, seed=seed, **options)


def of_size(text: nn.Module | str, the_task: Task, match: Match) -> str:
    """The model's text with the width that `match` asks for on this task, or on the one that it names."""
    if not isinstance(text, str):
        raise BadInput("match chooses the width of a model that is built by name; this one is built already")
    on = trusted_task(match.task) if match.task else the_task
    return matched(pinned(text), on.inputs, on.outputs, replace(match, task=""))


def subject_of(model_or_name: nn.Module | str, the_task: Task, kept: bool) -> str:
    """What a cell calls the model: its text. One that was not built by name has none, and cannot be kept."""
    built_model = built(model_or_name, the_task, seed=0)
    text: str | None = getattr(built_model, "text", None)
    if text is None and kept:
        raise BadInput(
            f"{own_name(built_model)} given as a module does not say how it was built, so its results cannot be kept: "
            "give its name, such as file.py:Class, or leave out `out`"
        )
    return text or own_name(built_model).lower()


def load(store: Store, cell: Cell) -> SequenceModel:
    """The model that a cell was trained to, with its weights; what stands in the way is said in one line (BadInput).

    Refused are weights that are missing or damaged, weights of another cell, and weights that do not fit the model of
    this name: a custom model whose file is gone or has changed, or another version of the code.
    """
    path = store.weights(cell)
    if path is None:
        raise BadInput(f"no weights are kept: {store.path(cell, 'safetensors').name} is not there")
    weights, note = checkpoint.load(path)
    shapes = {name: tuple(each.shape) for name, each in weights.items()}
    if "cell" not in note or Cell(**note["cell"]).identity != cell:
        raise BadInput(f"{path.name} holds the weights of another cell")
    record = store.read(cell)
    if "training" in note and isinstance(record, TrainingRecord) and note["training"] != record.training.fingerprint:
        raise BadInput(f"{path.name} holds the weights of another training of this cell")
    the_task = trusted_task(cell.task)
    check_size_fits(cell.subject, the_task, shapes, path.name)
    loaded = built(cell.subject, the_task, cell.seed)
    check_fits(loaded, shapes, path.name, cell.subject)
    loaded.load_state_dict(weights)
    return frozen(loaded)


def check_size_fits(subject: str, the_task: Task, shapes: Mapping[str, Shape], file: str, called: str = "") -> None:
    """Refuse weights that do not fit a model of ours before its tensors take memory: what a record calls the model may
    be any size. Code of others is built as it is, once; whoever allows it has to know what it takes.
    """
    name = read_options(subject)[0]
    if entry(name).at.startswith("statetrack."):
        with torch.device("meta"):  # shapes and no numbers
            hollow = built(subject, the_task, 0)
        check_fits(hollow, shapes, file, called or subject)


def check_fits(model: nn.Module, shapes: Mapping[str, Shape], file: str, subject: str) -> None:
    """Refuse weights of these shapes where one of them is not a tensor of the model, or one of it is missing."""
    expected = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    for name in [*expected, *shapes]:
        if name not in shapes or name not in expected:
            raise BadInput(
                f"{file} does not fit {subject}: {name} is in {'the model' if name in expected else file} only"
            )
        if shapes[name] != expected[name]:
            raise BadInput(
                f"{file} does not fit {subject}: {name} is {shapes[name]} there, {expected[name]} in the model"
            )


def frozen(model: SequenceModel) -> SequenceModel:
    """The model as it is looked at: nothing in it is trained any more."""
    nn.Module.requires_grad_(model, False)
    return model.eval()
