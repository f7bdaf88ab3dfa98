"""Track the Stat by the original's rules, and prompts of one's own."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import statetrack as st
from statetrack.asking import Episode, Reply, Rules, description, dialogue, question, solver, templates
from statetrack.asking.metrics import overview
from statetrack.asking.rules import how
from statetrack.asking.run import ask, cell
from statetrack.asking.terms import fingerprint
from statetrack.cli import main
from statetrack.reports.folder import protocol_labels
from statetrack.results import Store
from statetrack.sweeps import Options, from_blocks, run

MEDIAN, MODE = st.task("track_the_stat.median"), st.task("track_the_stat.mode")
COMPAT = Rules(compat=True)
OWN = "Track the {task}: {7: 2}.\nFormat: [{task}: <n>]\n"
SHOWN = "=== state ===\nWhat you know\n{label}\n{state}\n"


def keys(rules: Rules) -> str:
    return cell(MEDIAN, rules, solver("oracle"), "", 0, 300).key


def test_the_keys_of_cells_without_these_rules_are_those_of_before() -> None:
    """Written by 0.3.0, which knew neither."""
    assert keys(Rules()) == "28425b41bbfe23c72b37"
    assert keys(Rules(history="own", every=2)) == "28c17651190ac0489e85"
    assert "compat" not in Rules().to_dict()
    assert len({keys(Rules()), keys(COMPAT), keys(Rules(prompt=OWN)), keys(Rules(prompt=f"{OWN} "))}) == 4


@pytest.mark.parametrize(("task", "case"), [(MEDIAN, "even number of numbers"), (MODE, "tied")])
def test_the_prompt_says_what_the_originals_says_and_no_more(task: st.Task, case: str) -> None:
    text, tag = description(task, COMPAT), task.tag
    assert case in text
    assert text.index(case) < text.index("example") < text.index(f"[{tag}: <answer>]")
    assert "nothing else" not in text  # nor which numbers there are
    assert "99" not in text
    shown = re.findall(rf"input: (\d+)\nanswer: \[{tag}: ([\d.]+)\]  # \S", text)
    assert len(shown) == 6
    answers = task.targets([[int(number) for number, _ in shown]])[0]
    assert [answer for _, answer in shown] == [task.answer_text(int(answer)) for answer in answers]


@pytest.mark.parametrize(("task", "label", "state"), [
    (MEDIAN, "All numbers shown so far, sorted:", "[51, 63, 85]"),
    (MODE, "How often each number was shown so far:", "{85: 1, 63: 1, 51: 1}"),
])  # fmt: skip
def test_the_state_is_announced_and_named_and_does_not_stay(task: st.Task, label: str, state: str) -> None:
    sent, who = [], solver("explicit:oracle")
    game = Episode(dialogue(task, COMPAT, 0, 3))
    while (request := game.request()) is not None:
        sent.append(who.prepare(request).messages)
        game.receive(who.reply(request))
    announced = f"Here is the current state, to help you with the task.\n{label}\n{state}"
    assert sent[2][-1] == {"role": "assistant", "content": announced}
    assert sent[2][-2] == {"role": "user", "content": "51"}
    assert [message["content"] for message in sent[2][1:-1:2]] == ["85", "63", "51"]
    assert all("state" not in message["content"] for message in sent[2][:-1])


def test_replies_have_any_length_and_counting_is_the_originals(tmp_path: Path, capsys: Any) -> None:
    request = Episode(dialogue(MEDIAN, COMPAT, 0, 5)).request()
    assert request is not None
    assert (request.room, Rules(compat=True, room=512).most_tokens) == (None, 512)
    assert main(["ask", "track_the_stat", "--solver", "oracle", "--samples", "2", "--length", "9", "--compat", "--out",
                 str(tmp_path)]) == 0  # fmt: skip
    assert re.search(r"^avg_max_length +8\.000 ", capsys.readouterr().out, re.MULTILINE)
    (row,) = overview(Store(tmp_path).records())
    assert (row["rules"], row["avg_max_length"]) == ("compat", 8)
    found = st.ask("track_the_stat.mode", solver="oracle", samples=2, length=9, compat=True, out=tmp_path)
    assert (found.summary()["avg_max_length"], found.summary()["counting"]) == (8, "original")


@pytest.mark.parametrize(("task", "rules", "said"), [
    ("txc", {"compat": True}, "compat is for track_the_stat.median and track_the_stat.mode; txc has no original"),
    ("track_the_stat.median", {"compat": True, "history": "own"}, "which leave no choice of history"),
    ("track_the_stat.median", {"compat": True, "regime": "thinking", "every": 2}, "no choice of regime, every"),
    ("track_the_stat.median", {"compat": "yes"}, "compat='yes' should be true or false"),
    ("track_the_stat.median", {"prompt": "Go."}, r"lacks \{format\}, or \[median: \.\.\.\]"),
    ("track_the_stat.median", {"prompt": "[mode: <n>]"}, r"lacks \{format\}, or \[median: \.\.\.\]"),
    ("track_the_stat.median", {"prompt": "{formt} [median: 1]"}, r"prompt '\{formt\}'; did you mean \{format\}"),
    ("track_the_stat.median", {"prompt": "{sequence} {format}"}, r"unknown placeholder of a prompt '\{sequence\}'"),
    ("track_the_stat.median", {"prompt": "{format}{group}"}, r"unknown placeholder of a prompt '\{group\}'"),
    ("track_the_stat.median", {"prompt": f"{OWN}=== state ===\nSee"}, r"lacks \{state\}: the message behind === state"),
    ("track_the_stat.median", {"prompt": OWN, "every": 2}, r"lacks \{format\}: every=2 needs it"),
    ("track_the_stat.median", {"prompt": OWN, "distractors": ["words"]}, r"lacks \{distractors\}: distractors words"),
    ("txc", {"prompt": "{format}", "way": "whole"}, r"lacks \{sequence\}: a prompt with the whole sequence needs it"),
    ("s5", {"prompt": "{sequence}", "way": "whole", "shots": 1}, r"lacks \{examples\}: shots=1 needs it"),
    ("s5", {"prompt": "{sequence}{format}", "way": "whole", "style": "table"}, r"lacks \{about\}: the table of style"),
    ("txc", {"prompt": "x" * 70_000}, "at most 65,536 bytes"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_before_a_model_is_made(task: str, rules: dict[str, Any], said: str) -> None:
    def engine() -> Any:
        raise AssertionError("made")

    with pytest.raises(st.BadInput, match=said):
        ask(st.task(task), Rules(**rules), solver("implicit"), [0], model="some/model", engine=engine, length=4)


def test_a_prompt_is_sent_to_the_letter() -> None:
    game = dialogue(MEDIAN, Rules(prompt=OWN + SHOWN), 0, 3)
    assert game.system == "Track the median: {7: 2}.\nFormat: [median: <n>]\n"
    assert game.state_message(game.turns[1]) == "What you know\nAll numbers shown so far, sorted\n[63, 85]"
    assert dialogue(MEDIAN, Rules(prompt=OWN), 0, 3).state_message(game.turns[1]) == "[63, 85]"
    assert dialogue(MODE, Rules(prompt=OWN, compat=True), 0, 3).state_message(game.turns[0]).startswith("Here is")
    every = "{about}|{format}|{example}"
    for rules in (Rules(), COMPAT):
        own = description(MEDIAN, Rules(prompt=every, compat=rules.compat)).split("|")
        assert all(part in description(MEDIAN, rules) for part in own)


def test_a_prompt_with_the_whole_sequence() -> None:
    row = [3, 1, 4]
    bare = question(st.task("s3"), row, Rules(way="whole", prompt="In {group}: {sequence} ="))
    assert (bare.prompt, bare.target, bare.form.tag) == ("In S3: 3 1 4 =", str(st.group("s3").product(row)), "")
    tagged = question(st.task("s3"), row, Rules(way="whole", prompt="{sequence}\n{format}"))
    assert tagged.target == f"[answer: {bare.target}]"
    ours = Rules(way="whole", style="table", shots=1)
    own = Rules(way="whole", style="table", shots=1, prompt="{about}|{examples}|{sequence}|{format}")
    told, plain = question(st.task("s3"), row, own), question(st.task("s3"), row, ours)
    assert (told.target, told.form) == (plain.target, plain.form)
    assert all(part in plain.prompt for part in told.prompt.split("|"))


def test_a_prompt_is_known_by_its_hash(tmp_path: Path, capsys: Any) -> None:
    """That of the file, in the cell, in its label and in what is told of the rules; the text goes with it."""
    (tmp_path / "own.txt").write_bytes((OWN + SHOWN).encode())
    digest = hashlib.sha256((tmp_path / "own.txt").read_bytes()).hexdigest()
    command = ["ask", "track_the_stat.median", "--solver", "explicit:oracle", "--samples", "2", "--length", "5",
               "--prompt", str(tmp_path / "own.txt"), "--out", str(tmp_path / "out")]  # fmt: skip
    assert main([*command, "--json"]) == 0
    protocol = json.loads(capsys.readouterr().out)["protocol"]
    assert protocol["prompt"] == {"sha256": digest, "template": OWN + SHOWN}
    assert how(protocol) == f"prompt {digest[:8]}"
    labels = protocol_labels([protocol, {"name": "ask", **Rules().to_dict()}])
    assert f"ask, prompt {digest[:8]}" in labels.values()
    (one, _) = Store(tmp_path / "out").records()
    assert one.episode.system == "Track the median: {7: 2}.\nFormat: [median: <n>]\n"  # type: ignore[attr-defined]
    assert one.episode.shown.startswith("What you know\n")  # type: ignore[attr-defined]
    rules = Rules.of_protocol(one.cell.protocol)
    assert rules.prompt == OWN + SHOWN
    assert one.episode.prompt_sha256 == fingerprint(MEDIAN, rules, True) != fingerprint(MEDIAN, Rules(), True)  # type: ignore[attr-defined]
    assert main(["results", str(tmp_path / "out"), "--csv", "-"]) == 0
    table = capsys.readouterr().out
    assert digest in table
    assert "Track the" not in table
    with pytest.raises(st.BadInput, match="not the text that its hash names"):
        Rules.of_protocol(one.cell.protocol | {"prompt": {"sha256": digest, "template": OWN}})


def test_a_sweep_holds_the_text_and_names_no_file(tmp_path: Path) -> None:
    """A file that a sweep of somebody else's named would be sent to a server."""
    block = {"tasks": ["track_the_stat.median"], "subjects": ["ask:none oracle"], "lengths": [5], "protocol": "ask"}
    sweep = from_blocks("own", [block | {"settings": {"prompt": OWN, "compat": True}}])
    assert run(sweep, tmp_path, Options(workers=0, device="cpu")).counts == {"done": 1}
    (record,) = Store(tmp_path).records()
    assert record.episode.system.startswith("Track the median")  # type: ignore[attr-defined]
    (tmp_path / "secret.txt").write_text("[median: x]")
    with pytest.raises(st.BadInput, match=r"lacks \{format\}"):
        from_blocks("other", [block | {"settings": {"prompt": str(tmp_path / "secret.txt")}}])


def test_a_prompt_with_a_key_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept with every cell, and that is not changed behind anybody's back."""
    monkeypatch.setenv("SOME_API_KEY", "abracadabra-4711")
    with pytest.raises(st.BadInput, match=r"holds a key.*'\*\*\* \[median: 1\]'"):
        ask(MEDIAN, Rules(prompt="abracadabra-4711 [median: 1]"), solver("oracle"), [0], length=3)


@pytest.mark.parametrize(("data", "said"), [(b"\xff\xfe", "is not UTF-8 text"), (b"x" * 70_000, "70,000 bytes")])
def test_a_file_that_is_no_prompt(tmp_path: Path, capsys: Any, data: bytes, said: str) -> None:
    (tmp_path / "own.txt").write_bytes(data)
    for path, words in ((tmp_path / "own.txt", said), (tmp_path / "none.txt", "No such file"), (tmp_path, "a folder")):
        assert main(["ask", "txc", "--solver", "oracle", "--prompt", str(path)]) == 2
        assert words in capsys.readouterr().err


def test_the_parts_of_a_file() -> None:
    assert templates.first_part("a\n=== state ===\nb\n") == "a\n"
    assert templates.state_part("a\n=== state ===\nb\n") == "b"
    assert templates.state_part("a === state ===\nb") is None
    assert templates.state_part("=== state ===\n") == ""


def test_a_cut_reply_without_a_bound_is_its_servers() -> None:
    game = Episode(dialogue(MEDIAN, COMPAT, 0, 3))
    game.request()
    assert game.receive(Reply("well", cut=True)) == "truncated"
    assert game.detail == "a reply cut off by its server, before its answer was whole"
