"""Learning rates from a pilot: which is chosen, whether it lies inside, and how a sweep takes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import statetrack as st
from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.models.catalogue import without_width
from statetrack.results import Store, plans
from statetrack.sweeps import read
from statetrack.sweeps.pilot import Pilot, pilots, rounded, written
from statetrack.sweeps.rates import Rates

SHORT = "settings: {most_checks: 1, check_every: 2, batch: 4, polish: 0, words: 0"
LADDER = f"""\
name: ladder
tasks: [s3, txc]
subjects: [gru, "mlp[layers=1]"]
lengths: [4]
match: {{parameters: 20k}}
rates: pilot
{SHORT}}}
"""
ONE = LADDER.replace("rates: pilot\n", "").replace("words: 0", "words: 0, rates: [1e-3, 3e-3, 1e-2]")


def file(folder: Path, text: str, name: str = "ladder.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("scores", "best", "inside"),
    [
        ({1e-3: 0.5, 3e-3: 0.9, 1e-2: 0.7}, 3e-3, True),
        ({1e-3: 0.5, 3e-3: 0.9, 1e-2: 0.95}, 1e-2, False),
        ({1e-3: 0.999, 3e-3: 1.0, 1e-2: 0.7}, 1e-3, False),  # tied, so the smaller one, which is at the edge
        ({3e-4: 0.8, 1e-3: 0.999, 3e-3: 1.0, 1e-2: 0.7}, 1e-3, True),
        ({1e-3: 0.9}, 1e-3, False),
    ],
)
def test_the_smallest_of_the_best_is_chosen(scores: dict[float, float], best: float, inside: bool) -> None:
    pilot = Pilot("gru", scores, 2)
    assert (pilot.best, pilot.inside) == (best, inside)
    assert bool(pilot.missing) == (not inside)
    assert all(rate < min(scores) or rate > max(scores) for rate in pilot.missing)


def test_grids_go_on_as_they_began() -> None:
    assert Pilot("gru", {3e-4: 0.9, 1e-3: 0.5}, 1).missing == [1e-4]
    assert Pilot("gru", {1e-3: 0.1, 2e-3: 0.5}, 1).missing == [5e-3]
    assert [rounded(value) for value in (1e-4, 2e-2, 9.9e-3)] == [1e-4, 2e-2, 1e-2]


def test_a_pilot_is_read_from_its_folder_and_a_ladder_takes_its_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pilot"
    st.sweep(file(tmp_path, ONE), out, workers=0, device="cpu", progress=False)
    found = {each.model: each for each in pilots(Store(out).records())}
    assert set(found) == {"gru", "mlp[layers=1]"}  # one of each, though widths differ between the two tasks
    assert len({each.cell.subject for each in Store(out).records()}) == 4
    for each in found.values():
        assert list(each.scores) == [1e-3, 3e-3, 1e-2]
        assert each.runs == 2
    text = written(found.values(), "pilot")
    rates = file(tmp_path, text, "rates.yaml")
    ladder = read(file(tmp_path, LADDER), rates=rates)
    for cell in ladder.cells:
        assert cell.protocol["rates"] == [found[without_width(cell.subject)].best]
    capsys.readouterr()
    code = main(["rates", str(out), "--out", str(tmp_path / "again.yaml")])
    said = capsys.readouterr()
    assert (tmp_path / "again.yaml").read_text().splitlines()[1:] == text.splitlines()[1:]
    assert code == (0 if all(each.inside for each in found.values()) else 1)
    for each in found.values():
        line = next(line for line in said.out.splitlines() if line.startswith(each.model))
        assert line.rstrip().endswith("yes") == each.inside
        assert ("sweep ladder " in said.err) == (code == 1)


def test_a_grid_is_extended_beside_what_is_there(tmp_path: Path) -> None:
    out, path = tmp_path / "pilot", file(tmp_path, ONE)
    st.sweep(path, out, workers=0, device="cpu", progress=False)
    st.sweep(path, out, subjects="gru", rates=3e-2, workers=0, device="cpu", progress=False)
    found = {each.model: each for each in pilots(Store(out).records())}
    assert list(found["gru"].scores) == [1e-3, 3e-3, 1e-2, 3e-2]
    assert list(found["mlp[layers=1]"].scores) == [1e-3, 3e-3, 1e-2]
    (plan,) = plans.saved(Store(out))
    assert len(plan.entries) == 4 + 2  # nothing of the first plan is forgotten
    st.sweep(path, out, workers=0, device="cpu", progress=False)
    (plan,) = plans.saved(Store(out))
    assert len(plan.entries) == 4  # the sweep itself takes the place of its plan


def test_a_model_that_comes_later_is_added_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, path = tmp_path / "ladder", file(tmp_path, LADDER)
    arguments = ["sweep", path, "--out", str(out), "--device", "cpu", "--workers", "0"]
    assert main([*arguments, "--rates", "1e-3"]) == 0
    assert main([*arguments, "--subject", "lstm", "--subject", "tanh-rnn", "--rates", "3e-3"]) == 0
    assert main(["status", str(out)]) == 0
    assert re.search(r"^ladder +8 .* 0 *$", capsys.readouterr().out, re.MULTILINE)
    added = [each for each in Store(out).records() if without_width(each.cell.subject) in ("lstm", "tanh-rnn")]
    assert len(added) == 4
    for record in added:  # of the size of the others, with the settings of the file
        assert record.cell.protocol["rates"] == [3e-3]
        assert record.cell.protocol["batch"] == 4
        assert abs(record["parameters"] - 20_000) <= 400


def test_models_that_are_asked_stay_as_they_are(tmp_path: Path) -> None:
    text = "lengths: [4]\nblocks:\n  - {tasks: [s3], subjects: [mlp], seeds: 2}\n"
    text += '  - {tasks: [s3], subjects: ["ask:none random"], protocol: ask}\n'
    cells = read(file(tmp_path, text), subjects=["gru"]).cells
    assert [cell.subject for cell in cells] == ["gru", "gru", "random"]


REFUSED = [
    (LADDER, "line 6: the rates are those of a pilot: give --rates, a file that `statetrack rates` has written"),
    (LADDER.replace("pilot", "{gru: 1e-3}"), "line 3: the rates name none for 'mlp[layers=1]'; a pilot chooses one"),
    (LADDER.replace("pilot", "{gru: 1e-3, 'gru[hidden=8]': 1e-2}"), "line 6: rates name 'gru' twice"),
    (LADDER.replace("pilot", "{gruu: 1e-3}"), "line 6: unknown model 'gruu'"),
    (LADDER.replace("pilot", "1e-3"), "line 6: rates '1e-3' should be 'pilot', or name a rate for each model"),
    (
        LADDER.replace("pilot", "{gru: fast, 'mlp[layers=1]': 1}"),
        "line 7: rates=fast should be a list of learning rates",
    ),
    (LADDER.replace("words: 0", "words: 0, rates: [1]"), "line 6: rates stand here and in settings"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_wrong_rates_of_a_file_are_refused_with_their_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        read(file(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [("fast", "should be a number, several"), ("not-there.yaml", "cannot be read"), ("mlp.yaml", "has no `rates`")],
)
def test_wrong_rates_of_a_command_are_refused(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mlp.yaml").write_text("mlp: 1e-3")
    with pytest.raises(BadInput, match=said):
        Rates.asked(given)


def test_what_is_no_pilot_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["rates", str(tmp_path / "empty")]) == 2
    assert "holds nothing that was trained" in capsys.readouterr().err
    settings = {"most_checks": 1, "check_every": 1, "polish": 0}
    for batch in (2, 3):
        st.train(
            "txc",
            "mlp[hidden=2]",
            length=4,
            batch=batch,
            settings=settings,
            words=0,
            out=tmp_path / "two",
            device="cpu",
        )
    assert main(["rates", str(tmp_path / "two")]) == 2
    assert "mlp was trained in 2 ways that differ in more than the rate" in capsys.readouterr().err
