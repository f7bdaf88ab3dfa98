"""`python -m tests.asking.kills N`: kill `statetrack ask` N times at random moments, and count what was paid twice.

A loopback server notes every request by the dialogue that it carries. One that comes again was paid for twice. That is
allowed for what was in flight when the process died: the reply had not been sent yet, or had been for less than GRACE
seconds, and the dialogue had not gone on behind it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.cli import main
from tests.integrations.inspect.loopback import Answer, good, serve

SAMPLES, LENGTH, BATCH = 8, 40, 4
LONGEST = 2.0  # seconds until a kill
GRACE = 0.5  # seconds that a loaded machine may take from the server's sending to our disk


@dataclass
class Ledger:
    """What the server was asked, by dialogue: how often, and when its reply went out."""

    asked: dict[str, int] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, number: int, body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        shown = [int(message["content"]) for message in messages if message["role"] == "user"]
        mode = max(set(shown), key=lambda value: (shown.count(value), value))
        time.sleep(random.uniform(0, 0.02))
        with self.lock:
            key = json.dumps([message["content"] for message in messages])
            self.asked[key] = self.asked.get(key, 0) + 1
            self.sent[key] = time.monotonic()
        return good(f"[mode: {mode}]")

    def in_flight(self, moment: float, since: float) -> set[str]:
        """The dialogues answered since the last kill whose reply need not be on the disk at the moment of this one."""
        with self.lock:
            gone_on = {json.dumps(json.loads(key)[:-2]) for key in self.asked}
            return {key for key, sent in self.sent.items() if sent > max(since, moment - GRACE) and key not in gone_on}

    def counts(self) -> dict[str, int]:
        with self.lock:
            return dict(self.asked)


def ask(url: str, out: Path) -> int:
    """The command in a process of its own, which is forked so that it need not import everything again."""
    child = os.fork()
    if child:
        return child
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os._exit(main(["ask", "track_the_stat.mode", "--model", f"openai-api/local/tiny[base_url={url}]", "--samples",
                   str(SAMPLES), "--length", str(LENGTH), "--batch", str(BATCH), "--out", str(out)]))  # fmt: skip


def count(kills: int, seed: int = 0) -> dict[str, int]:
    """Kill so many times, then let it end; a folder that is full is followed by a fresh one."""
    import statetrack.integrations.inspect.engine  # noqa: F401, before the first fork

    chance = random.Random(seed)
    os.environ["LOCAL_API_KEY"] = "a key for nobody"
    found = {"kills": 0, "replies": 0, "paid twice": 0, "of these not in flight": 0, "episodes done": 0}
    with tempfile.TemporaryDirectory() as place:
        for folder in range(kills + 1):
            if found["kills"] == kills:
                break
            out = Path(place) / str(folder)
            ledger = Ledger()
            lost: set[str] = set()  # in flight when the process died
            before: dict[str, int] = {}
            last = 0.0
            with serve(ledger.script) as server:
                ended = False
                while not ended:
                    child = ask(server.url, out)
                    if found["kills"] < kills:
                        ended = _killed(child, chance.uniform(0.05, LONGEST))
                        found["kills"] += not ended
                    else:
                        os.waitpid(child, 0)
                        ended = True
                    moment = time.monotonic()
                    time.sleep(0.1)  # until the server has done with what it was asked
                    now = ledger.counts()
                    again = {key for key in before if now[key] > before[key]}
                    found["of these not in flight"] += sum(now[key] - before[key] - (key in lost) for key in again)
                    lost = (lost - again) | ledger.in_flight(moment, last)
                    before, last = now, moment
            found["replies"] += len(before)
            found["paid twice"] += sum(before.values()) - len(before)
            records = [json.loads(path.read_text()) for path in out.glob("*.json")]
            found["episodes done"] += sum(record["status"] == "done" for record in records)
            assert all(record["episode"]["outcomes"] == "+" * LENGTH for record in records)
            assert len(records) == SAMPLES
            assert not list(out.glob("*.replies.jsonl"))
    return found


def _killed(child: int, seconds: float) -> bool:
    """Kill our child after some seconds; True where it had ended by itself."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    for what, number in count(int(sys.argv[1]) if len(sys.argv) > 1 else 50).items():
        print(f"{number:7,} {what}")
