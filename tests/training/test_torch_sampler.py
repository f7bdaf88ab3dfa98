"""The sampler in torch gives the bits of the sampler in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from statetrack import task
from statetrack.training.batches import Batches, BatchRequest
from statetrack.training.torch_sampler import TorchSampler, has_twin

CPU = torch.device("cpu")
TEXTS = ["txc", "txc[p=0.1]", "fsm[k=5,p=0.05]", "mod_counter[m=7]", "flip_flop", "flip_flop[weights=[8,1,1]]",
         "cycle_navigation", "even_pairs", "xor_lag[k=3]", "cups[n=4]"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("length", "count", "seed", "first"), [(1, 3, 0, 0), (17, 5, 3, 40), (64, 9, 12345, 10**9)])
def test_the_same_bits(text, length, count, seed, first):
    one = task(text)
    assert has_twin(one)
    batch = one.sample(length, count, seed, "validation", first)
    inputs, targets, mask = TorchSampler(one, CPU).sample(length, count, seed, "validation", first)
    np.testing.assert_array_equal(inputs.numpy(), batch.inputs)
    np.testing.assert_array_equal(targets.numpy(), batch.targets)
    np.testing.assert_array_equal(mask.numpy(), batch.mask.astype(bool))


@pytest.mark.parametrize("text", ["dyck", "modular_arithmetic", "track_the_stat.median", "rtc", "txc[ask=end]", "s9"])
def test_a_task_with_its_own_draws_or_machine_has_none(text):
    assert not has_twin(task(text))


def test_the_feed_serves_every_replica_its_own_rows_also_after_a_wrong_guess():
    one = task("txc")
    feed = Batches(one, CPU)
    first = (BatchRequest(0, 4, 0), BatchRequest(7, 8, 0))
    guess = (BatchRequest(0, 4, 3), BatchRequest(7, 8, 3))
    actual = (BatchRequest(0, 8, 3), BatchRequest(7, 8, 3))
    for wanted, expected_next in ((first, guess), (actual, actual)):
        rows = feed.get(wanted, 3, expected_next)
        for row, want in enumerate(wanted):
            batch = one.sample(want.length, 3, want.seed, "train", want.first)
            np.testing.assert_array_equal(rows.inputs[row, :, : want.length], batch.inputs)
            np.testing.assert_array_equal(rows.targets[row, :, : want.length], batch.targets)
            assert rows.mask[row, :, : want.length].all()
            assert not rows.mask[row, :, want.length :].any()
    feed.close()
