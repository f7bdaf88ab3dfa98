"""An OpenAI-compatible server on 127.0.0.1 that answers as a test wants, well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_REQUESTS = 2000
STALL = 5.0  # seconds; every test gives up much earlier

Answer = dict[str, Any]
"""status, headers, body (bytes), stall (bool), broken (bool): what goes over the wire."""


def good(text: str | None, finish: str | None = "stop", **usage: Any) -> Answer:
    """A whole reply; usage as the server counts it."""
    counts = {"prompt_tokens": 100, "completion_tokens": 6, "total_tokens": 106, **usage}
    message = {"role": "assistant", "content": text}
    body = {
        "id": "reply-1", "object": "chat.completion", "created": 1, "model": "tiny", "usage": counts,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
    }  # fmt: skip
    return {"body": json.dumps(body).encode()}


def error(status: int, message: str, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    body = json.dumps({"error": {"message": message, "type": "error", **fields}}).encode()
    # The header keeps the client library from retrying by itself, so that a test counts our tries alone.
    return {"status": status, "body": body, "headers": {"x-should-retry": "false", **(headers or {})}}


BAD: dict[str, Answer] = {
    "429": error(429, "slow down", {"retry-after": "0"}),
    "500": error(500, "out of order"),
    "503": error(503, "overloaded"),
    "time-out": {"stall": True},
    "empty": good(""),
    "null": good(None),
    "cut-off": good("[mo", "length", completion_tokens=2),
    "broken": {**good("[mode: 85]"), "broken": True},
    "not JSON": {"body": b"<html>gateway</html>"},
    "no choices": {"body": b'{"id": "1", "object": "chat.completion", "choices": [], "created": 1, "model": "tiny"}'},
    "another object": {"body": b'{"hello": "world"}'},
    "a bare string": {"body": b'"hello"'},
    "an end by error": good("[mode: 85]", "error"),
    "no end": good("[mode: 8", None),
    "an end by time-out": good("Please try again.", "timeout"),
    "an error beside a choice": {"body": good("overloaded")["body"][:-1] + b', "error": {"message": "overloaded"}}'},
    "an error in a choice": {
        "body": good("[mode: 85]")["body"].replace(b'"logprobs": null', b'"error": {"code": 502}, "logprobs": null')
    },
}


class Loopback(ThreadingHTTPServer):
    """Answers the n-th request (from 0) with `script(n, body)`; keeps the bodies and keys that it was sent."""

    daemon_threads = True

    def __init__(self, script: Callable[[int, dict[str, Any]], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.lock = threading.Lock()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up closes its end: nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(body)
            self.server.keys.append(self.headers.get("authorization", ""))
        answer = (
            self.server.script(number, body) if number < MOST_REQUESTS else error(400, "too many requests for a test")
        )
        if answer.get("stall"):
            self.server.over.wait(STALL)
            self.close_connection = True
            return
        content = answer["body"]
        self.send_response(answer.get("status", 200))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if answer.get("broken") else content)
        self.close_connection = bool(answer.get("broken"))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(script: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Loopback]:
    server = Loopback(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(STALL)
