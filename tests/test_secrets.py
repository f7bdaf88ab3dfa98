"""Keys are hidden in every spelling, and nothing else is."""

from __future__ import annotations

import base64
import io
import logging
import re
import subprocess
import sys
import unicodedata

import pytest

from statetrack import secrets
from statetrack.secrets import scrub, scrub_error, scrubbed
from tests.asking.echoes import ECHOES, KEY, leaks


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)


@pytest.mark.parametrize("way", ECHOES)
def test_every_way_of_repeating_a_key_is_hidden(way: str) -> None:
    text = f"before {ECHOES[way](KEY)} after"
    assert leaks(text)  # the search itself finds it
    clean = scrub(text)
    assert not leaks(clean)
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert "***" in clean


def test_escapes_within_escapes_and_breaks_within_the_key_are_seen_through() -> None:
    twice = "".join(f"%25{byte:02x}" for byte in KEY.encode())
    nested = "".join(f"\\\\u{byte:04x}" for byte in KEY.encode())
    for text in (twice, nested, f"{KEY[:12]}\n{KEY[12:]}", " ".join(KEY), f"&quot;{KEY}&quot;"):
        assert KEY[4:12] not in scrub(text)
        assert scrub(text).count("***") == 1


def _signs(form: str, key: str = KEY) -> str:
    return "".join(form.format(ord(sign), name=unicodedata.name(sign)) for sign in key)


OTHER_WAYS = {
    "octal": _signs("\\{:03o}"),
    "long JSON": _signs("\\U{:08x}"),
    "braces": _signs("\\u{{{:x}}}"),
    "by name": _signs("\\N{{{name}}}"),
    "percent u": _signs("%u{:04x}"),
    "HTML without its end": _signs("&#{} "),
    "HTML in hex without its end": _signs("&#x{:x}"),
    "HTML with zeros": _signs("&#{:012d};"),
    "HTML five times": _signs("&amp;amp;amp;amp;#{};"),
    "numbers in hex": _signs("0x{:02x}, "),
    "quoted-printable": _signs("={:02X}"),
    "full width": "".join(chr(ord(sign) + 0xFEE0) for sign in KEY),
    "backwards": KEY[::-1],
    "base32": base64.b32encode(KEY.encode()).decode(),
    "base64 twice": base64.b64encode(base64.b64encode(KEY.encode())).decode(),
    "base64 in lines": "\n".join(re.findall("..?.?.?", base64.b64encode(f"me:{KEY}".encode()).decode())),
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_other_spellings_are_hidden(way: str) -> None:
    clean = scrub(f"before: {OTHER_WAYS[way]} | after")
    assert re.fullmatch(r"before: \S{0,9}\s?\*\*\*\S{0,9}\s*\| after", clean), clean


def test_numbers_that_hold_digits_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"id": 9081726354, "logprob": -0.30102999, "ok": True, "count": 3}
    assert scrubbed(numbers) == numbers
    monkeypatch.setenv("OTHER_API_KEY", "sec-9081726354")
    assert scrubbed(numbers) == numbers | {"id": 0}


def test_a_million_backslashes_are_as_quick_as_letters() -> None:
    assert scrub("\\" * 2**19 + KEY).endswith("***")  # it took hours


def test_warnings_and_threads_show_no_key() -> None:
    program = f"""
import threading, warnings
from statetrack.secrets import guard
guard()
warnings.warn("input_value={KEY!r}")
def fail(): raise ValueError("sent {KEY}")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Bad:
    def __del__(self): raise ValueError("held {KEY}")
Bad()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "sent ***" in done.stderr
    assert "held ***" in done.stderr
    shown = [line for line in done.stderr.splitlines() if "warnings.warn" not in line]  # the program itself has it
    assert any("input_value=" in line and "***" in line for line in shown)
    assert not leaks("\n".join(line for line in shown if "raise ValueError" not in line and "def " not in line))


@pytest.mark.parametrize(
    "text",
    ["[mode: 85]", "I compose them: (0 1)(2 3)", "", "100%", "a back key", "İstanbul 9９", "\ud800", "\\u00", "&#;"],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert scrub(text) == text


def test_a_path_to_credentials_is_hidden_whole_and_its_folders_are_not(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    assert scrub(f"in {tmp_path}") == "in ***"
    assert scrub(f"in {str(tmp_path)[:-2]}") == f"in {str(tmp_path)[:-2]}"


def test_a_key_that_was_told_of_is_hidden_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_given", set())
    assert scrub("token xyzzy-12345") == "token xyzzy-12345"
    secrets.remember_named(
        {"auth_token": "xyzzy-12345", "base_url": "http://host/v1/models", "header": {"x": "plugh-678"}}
    )
    assert scrub("xyzzy-12345, plugh-678, http://host/v1/models") == "***, ***, http://host/v1/models"


def test_errors_with_all_that_led_to_them() -> None:
    cause = ValueError(f"{KEY} is bad", {"body": [KEY.encode()]})
    error = RuntimeError("no")
    error.body, error.__cause__, cause.__context__ = {"message": KEY}, cause, error  # type: ignore[attr-defined]
    scrub_error(error)
    assert KEY not in f"{vars(error)} {cause.args}"
    assert scrubbed({KEY: (1, KEY)}) == {"***": (1, "***")}


def test_log_records_and_tracebacks_of_a_process_are_clean() -> None:
    code = (
        "import logging, sys; from statetrack.secrets import guard; guard(); guard()\n"
        f"logging.basicConfig(stream=sys.stdout); log = logging.getLogger('far.away')\n"
        f"log.warning('sent %s', {KEY!r})\n"
        f"try: raise ValueError({KEY!r})\n"
        "except ValueError: log.exception('so')\n"
        f"raise RuntimeError('with ' + {KEY!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "raise " not in line)
    assert "sent ***" in told
    assert "ValueError: ***" in told
    assert "RuntimeError: with ***" in told
    assert KEY not in told
    assert done.returncode == 1


def test_a_guarded_logger_leaves_what_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    before = logging.getLogRecordFactory()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("guarded")
    logger.addHandler(handler)
    try:
        secrets.guard()
        logger.warning("%d of %s", 3, "cells")
        logger.warning("%s", KEY)
    finally:
        logger.removeHandler(handler)
        logging.setLogRecordFactory(before)
    assert stream.getvalue() == "3 of cells\n***\n"


def test_a_key_that_holds_a_piece_of_another_is_hidden_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "loop-back-12345678")
    assert scrub("key sk-abcdefgh12345678!") == "key ***!"


def test_the_line_of_a_refusal_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from statetrack.cli import main

    monkeypatch.setenv("SOME_API_KEY", KEY)
    assert main(["show", f"nosuch-{KEY}"]) == 2
    assert not leaks(capsys.readouterr().err)
