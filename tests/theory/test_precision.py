"""Predictions by column of precision: no "proved" that weights set by hand contradict, and sizes count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetrack as st
from statetrack.theory import predict
from statetrack.theory.predictions.answers import BOUNDED, COLUMNS, EXACT, FLOATS, LOG, Answer

S5_BY_SWAPS = "cups[n=5,items=all]"

RIGHT_BY_HAND = [
    # weights that tests/models/test_counterexamples.py and test_witnesses.py run: model, task, columns they belong to
    ("e88-published-1l-small[learned_start=true]", "txc", (EXACT, FLOATS)),  # sign
    ("e88-1l-small", "rtc", (LOG,)),  # tiny_counter
    ("mamba2-4l", "txc", (LOG,)),  # even_counter
    ("e88-1l-small[learned_start=true]", "txc", (FLOATS,)),  # falling_pair, on the CPU kernel
    ("linear-rnn[learned_start=true]", "flip_flop", (EXACT,)),  # latch
    ("linear-rnn", "rtc", (LOG,)),  # counter
    ("linear-rnn-nobias[learned_start=true]", "rtc", (EXACT,)),  # a learned start is a bias
    ("linear-rnn", "fsm", (LOG, FLOATS)),
    ("e88-gain-1l-small", "txc", (EXACT, BOUNDED, FLOATS)),  # toggle
    ("e88-gain-1l-small[learned_start=true]", S5_BY_SWAPS, (EXACT, BOUNDED, FLOATS)),  # swaps
    ("e88-gain-r4[learned_start=true]", "s5", (EXACT, BOUNDED, FLOATS)),  # permutations
    ("tanh-rnn", "modular_arithmetic", (EXACT, BOUNDED, FLOATS)),  # automaton
    ("gru", "modular_arithmetic", (EXACT, BOUNDED, FLOATS)),
    ("lstm", "modular_arithmetic", (EXACT, BOUNDED, FLOATS)),
]


def answer(model: str, task: str, column: str) -> Answer:
    return predict(model, st.task(task)).row[column]


@pytest.mark.parametrize(("model", "task", "columns"), RIGHT_BY_HAND)
def test_nothing_is_proved_that_weights_contradict(model: str, task: str, columns: tuple[str, ...]) -> None:
    for column in columns:
        said = answer(model, task, column)
        assert not (said.denies and said.status == "proved"), said


@pytest.mark.parametrize(("model", "task", "columns"), RIGHT_BY_HAND)
def test_what_is_right_by_hand_is_granted(model: str, task: str, columns: tuple[str, ...]) -> None:
    """But for the pair at which a kernel's tanh falls: there it is denied on the condition that it does not."""
    for column in columns:
        said = answer(model, task, column)
        fallen = (model, task) == ("e88-1l-small[learned_start=true]", "txc")
        assert said.outcome == ("cannot" if fallen else "every length")
        assert not fallen or "tanh is increasing" in said.conditions[0]


def test_a_contraction_fades_under_errors_and_not_in_exact_reals() -> None:
    said = predict("e88-published-1l-small", st.task("txc"))
    assert (said.outcome, said.precision, said.status) == ("fades", BOUNDED, "proved")
    assert said.row[EXACT].outcome == said.row[FLOATS].outcome == "every length"
    assert said.row[EXACT].conditions == ("the start is learned",)


def test_increasing_maps_need_an_increasing_tanh_in_floats() -> None:
    said = predict("e88-1l", st.task("txc"))
    assert (said.outcome, said.precision, said.status) == ("cannot", BOUNDED, "proved")
    assert said.row[FLOATS].status == "conditional"
    assert said.row[EXACT].outcome == "unknown"


def test_a_count_with_log_t_bits_is_no_answer_in_floats() -> None:
    for model in ("linear-rnn", "mamba2-4l", "lstm"):
        said = predict(model, st.task("rtc"))
        assert (said.outcome, said.precision) == ("every length", LOG)
        assert (said.row[FLOATS].outcome, said.row[FLOATS].status) == ("cannot", "proved")


def test_linear_steps_hold_nothing_under_errors() -> None:
    for model, task in [("mamba2-4l", "flip_flop"), ("deltanet-neg", "txc"), ("mamba2-4l-neg", "txc")]:
        said = predict(model, st.task(task))
        assert (said.outcome, said.precision) == ("every length", FLOATS)
        assert (said.row[BOUNDED].outcome, said.row[BOUNDED].status) == ("fades", "proved")
    assert answer("mamba2-4l", "s5", BOUNDED).outcome == "cannot"
    assert answer("mamba2-4l", "xor_lag", BOUNDED).outcome == "unknown"  # only the last inputs matter


def test_forms_without_tanh_are_families_of_their_own() -> None:
    """d I - k k^T reflects only where d = 1 and along a line, so it is not filed under reflections."""
    assert answer("e88-published-1l-notanh", "cups[n=3]", EXACT).outcome == "unknown"
    assert predict("e88-published-1l-notanh", st.task("cups[n=3]")).outcome != "every length"
    assert answer("e88-gain-1l-notanh", "cups[n=3]", EXACT).outcome == "every length"


@pytest.mark.parametrize(
    ("small", "large", "task"),
    [
        ("e88-gain-1l-small", "e88-gain-1l-small[heads=5]", "z2_5"),
        ("gated-deltanet-neg", "gated-deltanet-neg[heads=5]", "z2_5"),
        ("e88-gain-1l-small", "e88-gain-1l-small[n_state=9]", "cups[n=9]"),
        ("e88-gain-r4[n_state=4]", "e88-gain-r4", "s5"),
        ("mamba2-4l-neg", "mamba2-8l-neg", "z2_5"),
        ("deltaproduct-4[heads=1,n_state=2]", "deltaproduct-4[heads=1]", "z2_4"),  # a row for each sign
        ("e88-gain-r2[heads=1]", "e88-gain-r2[heads=3]", "z2_3"),  # each set of points in a head of its own
    ],
)
def test_sizes_are_those_of_the_model_at_hand(small: str, large: str, task: str) -> None:
    assert predict(small, st.task(task)).outcome != "every length"
    assert predict(large, st.task(task)).outcome == "every length"


@pytest.mark.parametrize(
    ("model", "task"), [("gru", "s9"), ("tanh-rnn", "m12"), ("gru[hidden=8]", "modular_arithmetic")]
)
def test_width_that_is_not_shown_to_be_enough_is_a_condition(model: str, task: str) -> None:
    said = predict(model, st.task(task))
    assert (said.outcome, said.status) != ("every length", "proved")


def test_a_transformer_ends_at_its_positions() -> None:
    said = predict("transformer-rope", st.task("rtc"))
    assert said.status == "conditional"
    assert "2,048" in said.conditions[0]
    assert said.row[FLOATS].outcome == "cannot"
    assert "512" in predict("transformer[positions=512]", st.task("rtc")).conditions[0]


def test_layers_are_counted_for_groups_alone() -> None:
    """C2 beside other parts: how many layers those take is not known."""
    task = "regex[pattern=b*(ab*a)*b*c(a|b|c)*,alphabet=abc]"
    assert st.task(task).automaton.minimised().steps.shape[0] > 2
    assert answer("mamba2-4l-neg", task, FLOATS).outcome != "every length"


def test_inputs_that_never_come_are_left_out_of_what_is_proved() -> None:
    """Without "hold" a flip-flop is the last input, which even an MLP knows."""
    assert predict("mlp", st.task("flip_flop[weights=[0,1,1]]")).outcome == "unknown"


def test_every_column_is_printed() -> None:
    lines = predict("e88-published-1l", st.task("txc")).text().splitlines()
    assert [line.split("  ")[1].strip() for line in lines[1:]] == list(COLUMNS)


def test_three_projections_are_not_denied_a_sign() -> None:
    """Weights: three_projections of tests/models/test_counterexamples.py."""
    assert answer("deltanet[reflections=2]", "txc", EXACT).outcome == "cannot"
    assert answer("deltanet[reflections=3]", "txc", EXACT).outcome == "unknown"


def test_one_letter_that_adds_nothing_needs_a_learned_start() -> None:
    task = "regex[pattern=(aa)*,alphabet=a]"
    for column in (EXACT, FLOATS):
        assert answer("linear-rnn", task, column).conditions == ()
        assert answer("linear-rnn-nobias", task, column).conditions == ("the start is learned",)


def test_every_gate_that_has_to_round_is_named() -> None:
    assert "a decay may round to 1" in answer("gated-deltanet-neg", "txc", FLOATS).conditions
    assert "a decay may round to 1" not in answer("deltanet-neg", "txc", FLOATS).conditions
    assert answer("lstm", "rtc", LOG).conditions == ("a decay may round to 1",)


def test_answers_that_are_no_threshold_of_signs(tmp_path: Path) -> None:
    """Three bits, each flipped by a letter; 1 at 000, 110 and 101. No linear map separates these corners of the cube
    from the others: (1, 1/2, 1/2) is the middle of 110 and 101, and of 100 and 111.
    """
    steps = {f"s{i}": {letter: f"s{i ^ 1 << bit}" for bit, letter in enumerate("abc")} for i in range(8)}
    answers = {f"s{i}": int(i in (0b000, 0b110, 0b101)) for i in range(8)}
    machine = {"states": list(steps), "alphabet": list("abc"), "start": "s0", "steps": steps, "answers": answers}
    (tmp_path / "cube.json").write_text(json.dumps(machine))
    for model in ("e88-gain-1l-small", "e88-gain-1l-small-notanh", "deltanet-neg"):
        read = "a linear map can read the answers"
        assert read in answer(model, f"automaton[file={tmp_path / 'cube.json'}]", FLOATS).conditions
        assert read not in answer(model, "z2_3", FLOATS).conditions


def test_words_that_never_come_deny_nothing() -> None:
    """Brackets one deep: the last one decides the answer, and only a mistake, which never comes, would be kept."""
    task = st.task("dyck[depth=1]")
    batch = task.sample(64, 256, seed=0)
    for symbol in range(task.inputs):
        assert len(set(batch.targets[batch.inputs == symbol].tolist())) == 1
    assert predict("mlp", task).outcome == "every length"
    assert not predict("deltanet", task).row[BOUNDED].denies
    for kept in ("dyck", "dyck[depth=1,wrong=0.1]", "dyck[kinds=1,depth=2]", "modular_arithmetic"):
        assert answer("mlp", kept, EXACT).outcome == "cannot"
        assert answer("deltanet", kept, BOUNDED).denies
    assert answer("e88-1l-notanh", "modular_arithmetic", EXACT).outcome == "cannot"


def test_states_that_are_not_asked_about_deny_nothing(tmp_path: Path) -> None:
    """A cycle of two states of which one is asked about: there the answer is always the same."""
    steps, answers = {"a": {"x": "b"}, "b": {"x": "a"}}, {"a": 1, "b": None}
    machine = {"states": ["a", "b"], "alphabet": ["x"], "start": "a", "steps": steps, "answers": answers}
    (tmp_path / "half.json").write_text(json.dumps(machine))
    task = f"automaton[file={tmp_path / 'half.json'}]"
    assert answer("mlp", task, EXACT).outcome == "every length"
    for model in ("e88-1l-notanh", "deltanet", "linear-rnn", "e88-1l"):
        assert not any(answer(model, task, column).denies for column in COLUMNS)


def test_a_width_that_is_not_shown_to_carry_the_bits_is_a_condition() -> None:
    for task in ("z2_4", "flip_flop[symbols=10]"):
        assert answer("e88-gain-1l-small[dim=1]", task, BOUNDED).conditions == ("dim is enough",)
        assert answer("e88-gain-1l-small", task, BOUNDED).conditions == ()
