"""What holds for every task: its worked example, its fast run, its sampling, its name, its refusals."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as s

import statetrack as st
from statetrack.tasks import catalogue
from statetrack.tasks.base import MAX_LENGTH, MAX_SEED, MAX_VALUES, Task, needed
from statetrack.tasks.machines.fsm import FSM

OWN = [name for name, where in catalogue.CLASSES.items() if not needed(catalogue._load(where))]
VARIANTS = [
    "rtc[p=0.4]",
    "fsm[k=5,p=0.05]",
    "xor_lag[k=4,p=0.3]",
    "mod_counter[m=3]",
    "flip_flop[weights=[8,1,1]]",
    "dyck[depth=3,kinds=3,wrong=0.1,p=0.3]",
    "dyck[depth=5,kinds=1]",
    "cycle_navigation[m=7,weights=[1,0.5,2]]",
    "modular_arithmetic[m=3,weights=[1,2,3,1,1,4]]",
    'regex[pattern="(ab|c)*a?",alphabet=abc]',
    "stream.sum_mod[m=7]",
    "stream.xor[bits=3]",
    "stream.window_median[k=4]",
    "stream.echo[k=7]",
    "variables[v=4,values=5,query=2]",
    "cups[n=4,items=all]",
    "boxes[objects=4,boxes=5,query=3]",
    "hands[n=4,items=all]",
    "roles[n=6,query=2]",
    "roles[n=4,items=all,events=all]",
    "dictionary_sum[k=3]",
    "dictionary_sum[words=7,low=1,high=30,dictionary=4,largest=150]",
]
GROUPS = ["s3_composition", "a5_composition[over=generators]"]
ALL = [*OWN, *VARIANTS, *GROUPS]
every_task = pytest.mark.parametrize("text", ALL)


def some_inputs(task: Task, count: int = 12, length: int = 23, seed: int = 5) -> np.ndarray:
    """Half of them the task's own data, half any symbols."""
    free = np.random.default_rng(seed).integers(0, task.inputs, size=(count, length), dtype=np.int32)
    return np.concatenate([task.sample(length, count, seed=seed).inputs, free])


def same(left: st.Batch, right: st.Batch) -> bool:
    return all(np.array_equal(getattr(left, key), getattr(right, key)) for key in ("inputs", "targets", "mask"))


# ---- the machine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OWN, "regex"])
def test_the_docstring_works_an_example(name: str) -> None:
    doc = catalogue._load(catalogue.CLASSES[name]).__doc__ or ""
    # Python 3.13 takes the common indent off a docstring, which here may be all of it.
    lines = dict(re.findall(r"^ *(task|inputs|answers)  +(\S.*)$", doc, flags=re.MULTILINE))
    task = st.task(lines.get("task", name))
    inputs = [int(symbol) for symbol in lines["inputs"].split()]
    batch = task.batch(inputs)
    answers = task.answers(inputs)
    shown = [f"{value:g}" if asked else "-" for value, asked in zip(answers, batch.mask[0])]
    assert shown == lines["answers"].split()


@every_task
def test_run_is_the_plain_machine(text: str) -> None:
    task = st.task(text)
    inputs = some_inputs(task)
    fast, plain = task.run(inputs), Task.run(task, inputs)
    assert np.array_equal(fast.defined, plain.defined)
    assert np.array_equal(fast.targets, plain.targets)
    assert fast.targets.dtype == np.int32


@every_task
@pytest.mark.parametrize("cut", [0, 1, 2, 9, 23])
def test_a_run_goes_on_from_its_state(text: str, cut: int) -> None:
    task = st.task(text)
    inputs = some_inputs(task)
    whole, first = task.run(inputs), task.run(inputs[:, :cut])
    kept = pickle.dumps(first.state)
    second = task.run(inputs[:, cut:], first.state)
    assert pickle.dumps(first.state) == kept  # the state given is not changed
    assert np.array_equal(np.concatenate([first.targets, second.targets], axis=1), whole.targets)
    assert np.array_equal(np.concatenate([first.defined, second.defined], axis=1), whole.defined)


@every_task
def test_compiled_and_plain_loops_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = st.task(text).sample(40, 30, seed=3)
    monkeypatch.setenv("STATETRACK_NUMBA", "0")
    assert same(st.task(text).sample(40, 30, seed=3), compiled)


@every_task
def test_answers_lie_in_their_classes_and_are_called_differently(text: str) -> None:
    task = st.task(text)
    batch = task.sample(50, 40)
    assert batch.inputs.min() >= 0
    assert batch.inputs.max() < task.inputs
    assert batch.targets.min() >= 0
    assert batch.targets.max() < task.outputs
    symbols = [task.symbol_text(symbol) for symbol in range(task.inputs)]
    answers = [task.answer_text(answer) for answer in range(task.outputs)]
    assert len(set(symbols)) == task.inputs
    assert len(set(answers)) == task.outputs
    assert all(symbols)
    assert all(answers)


SIZES = {
    "rtc": (2, 2), "txc": (2, 2), "fsm": (2, 2), "xor_lag": (2, 2), "even_pairs": (2, 2), "flip_flop": (3, 2),
    "mod_counter": (2, 5), "dyck": (4, 4), "cycle_navigation": (3, 5), "modular_arithmetic": (8, 5),
    "track_the_stat.median": (100, 199), "track_the_stat.mode": (100, 100), "stream.max": (100, 100),
    "stream.min": (100, 100), "stream.distinct": (100, 101), "stream.sum_mod": (100, 10), "stream.xor": (128, 128),
    "stream.majority": (100, 2), "stream.window_median": (100, 199), "stream.echo": (100, 100),
    "variables": (39, 10), "cups": (10, 5), "boxes": (15, 3), "hands": (10, 5), "roles": (5, 5),
    "dictionary_sum": (100, 19999),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_the_alphabets(name: str) -> None:
    assert (st.task(name).inputs, st.task(name).outputs) == SIZES[name]


# ---- sampling --------------------------------------------------------------------------------------------------------


@every_task
def test_a_row_does_not_depend_on_its_batch(text: str) -> None:
    task = st.task(text)
    whole = task.sample(19, 30, seed=2)
    part = task.sample(19, 7, seed=2, first=11)
    assert np.array_equal(part.inputs, whole.inputs[11:18])
    assert np.array_equal(part.targets, whole.targets[11:18])
    assert same(st.task(text).sample(19, 30, seed=2), whole)
    assert task.sample(19, 0).inputs.shape == (0, 19)


@every_task
def test_rows_of_several_lengths_are_the_rows_of_each(text: str) -> None:
    task = st.task(text)
    lengths, indices = np.array([5, 31, 1, 31]), np.array([4, 0, 9, 1])
    rows = task.rows(lengths, indices, 7, "validation")
    for row, length, index in zip(rows, lengths.tolist(), indices.tolist()):
        alone = task.sample(length, 1, seed=7, split="validation", first=index)
        assert np.array_equal(row[:length], alone.inputs[0])


@every_task
@pytest.mark.parametrize("window", [1, 6, 64])
def test_windows_of_a_stream_are_one_sample(text: str, window: int) -> None:
    for task in (st.task(text), st.task(text).with_parameters(ask="end")):
        for split in task.splits:
            begins, batches = zip(*task.stream(26, 5, seed=3, split=split, window=window))
            assert begins == tuple(range(0, 26, window))
            keys = ("inputs", "targets", "mask")
            joined = [np.concatenate([getattr(batch, key) for batch in batches], axis=1) for key in keys]
            assert same(st.Batch(*joined), task.sample(26, 5, seed=3, split=split))


@every_task
def test_splits_seeds_and_lengths_share_no_row(text: str) -> None:
    task = st.task(text)
    kinds = [(split, seed, 200) for split in task.splits for seed in (0, 1000)] + [("train", 0, 201)]
    rows = [row[:200].tobytes() for split, seed, length in kinds for row in task.sample(length, 50, seed, split).inputs]
    assert len(set(rows)) == len(rows)


@every_task
def test_ask_end_shows_the_same_rows_and_asks_once(text: str) -> None:
    every = st.task(text)
    end = every.with_parameters(ask="end")
    assert "ask=end" in end.name
    for length in (1, 17):
        batch, full = end.sample(length, 20), every.sample(length, 20)
        assert np.array_equal(batch.inputs, full.inputs)
        assert np.array_equal(batch.targets, full.targets)
        assert not batch.mask[:, :-1].any()
        assert np.array_equal(batch.mask[:, -1], full.mask[:, -1])
    if not text.startswith("dictionary_sum["):  # which asks nothing after 17 keys of three a turn, or at a large sum
        assert end.sample(17, 1).mask.sum() == 1


@pytest.mark.parametrize("text", [text for text in ALL if not text.startswith("dyck")])
def test_symbols_come_in_their_shares(text: str) -> None:
    task = st.task(text)
    rows = task.sample(400, 250, seed=9).inputs
    share = np.bincount(rows.ravel(), minlength=task.inputs) / rows.size
    weights = np.asarray(task.symbol_weights or (1.0,) * task.inputs)
    expected = weights / weights.sum()
    assert np.all(np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / rows.size))


@every_task
def test_batches_are_integer_arrays(text: str) -> None:
    batch = st.task(text).sample(6, 4)
    assert batch.inputs.shape == batch.targets.shape == batch.mask.shape == (4, 6)
    assert (batch.inputs.dtype, batch.targets.dtype, batch.mask.dtype) == (np.int32, np.int32, np.uint8)


# ---- names -----------------------------------------------------------------------------------------------------------


@every_task
def test_the_name_gives_the_task_back(text: str) -> None:
    task = st.task(text)
    assert task.name == text
    for same_task in (st.task(task.name), st.task(f" {text} "), pickle.loads(pickle.dumps(task))):
        assert same_task == task
        assert hash(same_task) == hash(task)
        assert same(same_task.sample(9, 3), task.sample(9, 3))


@pytest.mark.parametrize("name", OWN)
def test_names_in_capitals_mean_the_same(name: str) -> None:
    assert st.task(name.upper()) == st.task(name)


def test_the_short_name_of_track_the_stat_is_the_mode() -> None:
    assert st.task("track_the_stat").name == "track_the_stat.mode"


def test_defaults_are_not_written_and_order_does_not_matter() -> None:
    assert st.task("fsm[p=0.05,k=5]").name == "fsm[k=5,p=0.05]"
    assert st.task("fsm[k=3,p=0.50,ask=every]").name == "fsm"
    assert st.task("flip_flop[weights=[8.0,1,1]]").name == "flip_flop[weights=[8,1,1]]"


def test_values_given_in_python_are_written_as_those_in_text() -> None:
    assert FSM(k=np.int64(5), p=np.float32(0.25)).name == "fsm[k=5,p=0.25]"
    assert FSM(p=1).name == st.task("fsm[p=1.0]").name == "fsm[p=1]"
    assert st.task("flip_flop").with_parameters(weights=[1, 2, 3]) == st.task("flip_flop[weights=[1,2,3]]")


@settings(max_examples=60, deadline=None)
@given(k=s.integers(1, 10_000), p=s.floats(0, 1), ask=s.sampled_from(["every", "end"]))
def test_random_parameters_survive_the_text(k: int, p: float, ask: str) -> None:
    task = FSM(k=k, p=p, ask=ask)
    assert st.task(task.name) == task


@settings(max_examples=60, deadline=None)
@given(weights=s.tuples(*[s.floats(0, 1e300)] * 3).filter(lambda w: 0 < sum(w) < float("inf")))
def test_random_weights_survive_the_text(weights: tuple[float, ...]) -> None:
    task = st.task("flip_flop").with_parameters(weights=weights)
    assert st.task(task.name) == task
    assert task.sample(5, 2).inputs.shape == (2, 5)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, -1, 10**9])
def test_lengths_that_cannot_be(length: int) -> None:
    for call in (st.task("txc").sample, lambda *a: next(st.task("txc").stream(*a))):
        with pytest.raises(st.BadInput, match=rf"length {length} should lie in 1\.\.{MAX_LENGTH}"):
            call(length, 1)


def test_other_sizes_that_cannot_be() -> None:
    task = st.task("txc")
    for wrong in ({"count": -1}, {"count": 1, "seed": -1}, {"count": 1, "first": -1}):
        with pytest.raises(st.BadInput, match="should not be negative"):
            task.sample(4, **wrong)
    with pytest.raises(st.BadInput, match=f"more than {MAX_VALUES} values"):
        task.sample(MAX_LENGTH, 1000)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"length": 5.5}, "length 5.5 should be a whole number"),
        ({"length": "5"}, "length '5' should be a whole number"),
        ({"count": 2.0}, "count 2.0 should be a whole number"),
        ({"seed": None}, "seed None should be a whole number"),
        ({"seed": MAX_SEED + 1}, f"seed {MAX_SEED + 1} .* should be at most {MAX_SEED}"),
    ],
)
def test_sizes_that_are_no_whole_numbers_or_too_large(wrong: dict[str, object], said: str) -> None:
    sizes = {"length": 4, "count": 2, "seed": 0, **wrong}
    with pytest.raises(st.BadInput, match=said):
        st.task("txc").sample(**sizes)
    with pytest.raises(st.BadInput, match=said):
        next(st.task("txc").stream(**sizes))


@pytest.mark.parametrize("split", ["test", "original"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"window": 0}, "window 0 should be at least 1"),
        ({"window": 2.5}, "window 2.5 should be a whole number"),
        ({"count": -2}, "count -2, .* should not be negative"),
        ({"count": MAX_VALUES + 1}, f"more than {MAX_VALUES} values"),
    ],
)
def test_streams_that_cannot_be(split: str, wrong: dict[str, int], said: str) -> None:
    with pytest.raises(st.BadInput, match=said):
        next(st.task("track_the_stat").stream(**{"length": 4, "count": 1, "split": split, **wrong}))


@every_task
def test_an_input_outside_the_alphabet_is_named_with_its_place(text: str) -> None:
    task = st.task(text)
    inputs = task.sample(5, 3).inputs.copy()
    inputs[2, 1] = task.inputs
    with pytest.raises(
        st.BadInput, match=rf"input {task.inputs} at row 2, position 1 is outside 0\.\.{task.inputs - 1}"
    ):
        task.targets(inputs)


def test_inputs_that_are_no_rows_of_whole_numbers() -> None:
    with pytest.raises(st.BadInput, match="whole numbers, not float64"):
        st.task("txc").targets([0.5, 1.0])
    with pytest.raises(st.BadInput, match="inputs of txc should be one row, or rows of one length"):
        st.task("txc").targets([[1, 0, 1], [1, 0]])
    with pytest.raises(st.BadInput, match=r"shape \(count, length\), not \(1, 1, 2\)"):
        st.task("txc").targets([[[0, 1]]])


@every_task
def test_unknown_parameters_splits_and_questions(text: str) -> None:
    task = st.task(text)
    with pytest.raises(st.BadInput, match="has no parameter 'nonsense'; it has "):
        st.task(f"{task.label}[nonsense=1]")
    with pytest.raises(st.BadInput, match="ask=never should be 'every' or 'end'"):
        task.with_parameters(ask="never")
    with pytest.raises(st.BadInput, match=r"split 'dev' of .* should be one of train, validation, test"):
        task.sample(4, 1, split="dev")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fsm[k=0]", r"fsm: k=0 should lie in 1\.\.10000"),
        ("fsm[k=1.5]", "fsm: k=1.5 should be a whole number"),
        ("fsm[p=2]", r"fsm: p=2\.0 should lie in 0\.\.1"),
        ("rtc[p=nan]", r"rtc: p=nan should lie in 0\.\.1"),
        ("rtc[p=often]", "rtc: p=often should be a number"),
        ("xor_lag[k=17]", r"k=17 should lie in 1\.\.16"),
        ("mod_counter[m=1]", r"m=1 should lie in 2\.\.10000"),
        ("flip_flop[weights=[1,2]]", "2 weights are given for 3 input symbols"),
        ("flip_flop[weights=[0,0,0]]", "not all zero"),
        ("flip_flop[weights=[1,-1,3]]", "not negative"),
        ("flip_flop[weights=[1,nan,3]]", "finite"),
        ("flip_flop[weights=[1e308,1e308,1e308]]", "finite"),
        ("flip_flop[weights=1]", r"should be a list of numbers such as \[1,2,1\]"),
        ("dyck[depth=16]", r"depth=16 should lie in 1\.\.15"),
        ("dyck[kinds=5]", r"kinds=5 should lie in 1\.\.4"),
        ("dyck[kinds=1,wrong=0.1]", "kinds of 2 or more"),
        ("dyck[wrong=1.5]", r"wrong=1.5 should lie in 0\.\.1"),
        ("cycle_navigation[m=1]", r"m=1 should lie in 2\.\.10000"),
        ("modular_arithmetic[m=51]", r"m=51 should lie in 2\.\.50"),
        ("modular_arithmetic[m=2,weights=[1,1,0,0,0]]", "operators: weights should be .* not all zero"),
        ("modular_arithmetic[m=2,weights=[1,1]]", "2 weights are given for 5 input symbols"),
        ("stream.sum_mod[m=1]", r"m=1 should lie in 2\.\.1000"),
        ("stream.xor[bits=100000000000]", r"bits=100000000000 should lie in 1\.\.10"),
        ("stream.window_median[k=0]", r"k=0 should lie in 1\.\.100"),
        ("stream.echo[k=101]", r"k=101 should lie in 1\.\.100"),
        ("variables[v=27]", r"v=27 should lie in 1\.\.26"),
        ("variables[values=1]", r"values=1 should lie in 2\.\.100"),
        ("variables[query=3]", r"query=3 should lie in 0\.\.2"),
        ("cups[n=1]", r"n=1 should lie in 2\.\.100"),
        ("cups[n=9,items=all]", r"n=9 should lie in 2\.\.8"),
        ("cups[items=some]", "items=some should be 'one' or 'all'"),
        ("boxes[objects=0]", r"objects=0 should lie in 1\.\.50"),
        ("boxes[query=-1]", r"query=-1 should lie in 0\.\.2"),
        ("automaton", r"automaton needs file: automaton\[file=...\]"),
        ("regex[alphabet=ab]", r"regex needs pattern: regex\[pattern=...\]"),
        ("fsn", "unknown task 'fsn'; did you mean fsm"),
        ("stream.medain", "unknown task 'stream.medain'; did you mean stream"),
    ],
)
def test_parameters_that_make_no_sense(text: str, said: str) -> None:
    with pytest.raises(st.BadInput, match=said) as caught:
        st.task(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"k": "3"}, {"k": 2.0}, {"k": True}, {"p": "0.5"}, {"p": None}, {"ask": 1}])
def test_python_values_of_a_wrong_type(wrong: dict[str, object]) -> None:
    (key,) = wrong
    with pytest.raises(st.BadInput, match=f"fsm: {key}=.* should be (a|text)"):
        FSM(**wrong)
