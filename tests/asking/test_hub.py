"""A model by its name: the hub is asked once, and where it cannot be, an earlier download is taken."""

from __future__ import annotations

import shutil
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import pytest

from statetrack import secrets
from statetrack.asking.engines import engine
from statetrack.asking.engines.hub import located
from statetrack.cli import main
from statetrack.errors import BadInput
from tests.asking.tiny_models import saved


class Hub(ThreadingHTTPServer):
    """A stand-in for the hub that answers all with one status, or hangs up, and counts."""

    status: int | None = 404
    asked = 0


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        self.server.asked += self.path.startswith("/api/models") or "resolve" in self.path  # of a model or its files
        if self.server.status is None:
            self.close_connection = True
            return
        self.send_response(self.server.status)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "the hub has no model of that name"), (None, "and the hub is not reached (")],
)
def test_a_name_that_nobody_knows_costs_one_question(
    status: int | None, said: str, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.status = status
    assert main(["ask", "txc", "--model", "hf:nofolder", "--samples", "1"]) == 2
    error = capsys.readouterr().err
    assert "statetrack: model hf:nofolder cannot be loaded: " in error
    assert "no such file or folder" in error
    assert said in error
    assert error.count("\n") == 1
    assert hub.asked == 1


def test_what_can_be_no_name_is_not_asked_for(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "txc", "--model", "hf:no folder", "--samples", "1"]) == 2
    assert "that is no name of the hub's either" in capsys.readouterr().err
    assert hub.asked == 0


def test_an_earlier_download_is_enough(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is laid out as the hub's client leaves it."""
    hub.status = None
    kept = tmp_path / "models--somebody--tiny"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs/main").write_text("0" * 40)
    shutil.move(saved(tmp_path / "tiny"), kept / "snapshots" / ("0" * 40))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert engine("hf:somebody/tiny", device="cpu").name == "hf:somebody/tiny"
    assert hub.asked == 1


def test_a_hub_that_repeats_the_token_is_not_repeated(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "hf_ZYXWVUTSRQPONMLKJIHGFEDCBA9876543210"
    monkeypatch.setattr(secrets, "_given", set())
    monkeypatch.setenv("HF_TOKEN", key)

    def echo(self: Answer) -> None:
        self.send_response(401)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Error-Message", f"bad {self.headers['Authorization']}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    monkeypatch.setattr(Answer, "do_GET", echo)
    with pytest.raises(BadInput) as refused:
        located("somebody/model")
    assert key not in "".join(traceback.format_exception(refused.value))
    assert "the hub has no model of that name" in str(refused.value)
