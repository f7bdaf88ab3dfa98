"""What the protocols decide, step by step."""

from __future__ import annotations

import pytest

from statetrack.errors import BadInput
from statetrack.training.protocol import PROTOCOLS, Progress, protocol


def walk(progress: Progress, steps: int) -> None:
    for _ in range(steps):
        progress.after_step()


def test_a_curriculum_doubles_when_solved_and_goes_on_when_the_budget_is_spent():
    rules = PROTOCOLS["curriculum"].with_changes(check_every=10, most_checks=2, polish=20)
    p = Progress(rules, 0.01, rules.stages(16))
    assert p.stages == [4, 8, 16]
    walk(p, 10)
    p.after_check(accuracy=0.9, tail=0.995, loss=0.1)
    assert p.length == 8
    walk(p, 10)
    p.after_check(accuracy=0.5, tail=0.5, loss=0.7)
    assert p.length == 8
    walk(p, 10)
    p.after_check(accuracy=0.5, tail=0.5, loss=0.7)
    assert p.length == 16
    assert p.best == -1.0, "only the full length counts"
    walk(p, 10)
    assert p.after_check(accuracy=1.0, tail=1.0, loss=0.0)
    assert p.polish_begun
    assert not p.done
    full = p.learning_rate
    walk(p, 10)
    assert 0 < p.learning_rate < full
    p.after_check(accuracy=1.0, tail=1.0, loss=0.0)
    walk(p, 10)
    p.after_check(accuracy=0.99, tail=1.0, loss=0.0)
    assert p.done
    assert p.learning_rate == 0
    assert p.best == 1.0


def test_the_design_protocol_is_the_documents():
    rules = protocol("DESIGN")
    assert (rules.batch, rules.rates, rules.weight_decay, rules.check_every, rules.most_checks, rules.patience) == (
        256, (1e-3,), 0.01, 20, 100, 10,
    )  # fmt: skip
    assert [rules.batch_at(length) for length in (16, 256, 512, 1024, 2048)] == [256, 256, 128, 64, 32]
    assert rules.stages(64) == [64]
    p = Progress(rules, 1e-3, [64])
    assert p.learning_rate == 1e-3
    walk(p, 1000)
    assert p.learning_rate == pytest.approx(5e-4)


def test_patience_counts_checks_without_a_better_accuracy():
    rules = PROTOCOLS["design"].with_changes(patience=3)
    p = Progress(rules, 1e-3, [64])
    for accuracy in (0.5, 0.6, 0.6, 0.55):
        walk(p, 20)
        p.after_check(accuracy, accuracy, 0.5)
        assert not p.done
    walk(p, 20)
    p.after_check(0.6, 0.6, 0.5)
    assert p.done
    assert (p.best, p.best_check) == (0.6, 2)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"batches": 3}, "did you mean batch"),
        ({"batch": 0}, "batch=0"),
        ({"rates": ()}, "learning rates"),
        ({"rates": (-1.0,)}, "learning rates"),
        ({"precision": "int8"}, "float32 or bfloat16"),
    ],
)
def test_settings_that_cannot_be(changes, part):
    with pytest.raises(BadInput, match=part):
        PROTOCOLS["design"].with_changes(**changes)
    with pytest.raises(BadInput, match="unknown protocol 'curiculum'; did you mean curriculum"):
        protocol("curiculum")
