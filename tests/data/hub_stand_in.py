"""A stand-in for the Hugging Face hub on loopback, as far as data sets are read from it and pushed to it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from statetrack import secrets

Files = dict[str, bytes]
TOKEN = "hf_of_a_stand_in"


class Hub(ThreadingHTTPServer):
    """Data sets by name, and what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.repos: dict[str, Files] = {}
        self.private: dict[str, bool] = {}
        self.commits: list[tuple[str, str]] = []
        self.fetched: list[str] = []
        self.refuses: int | None = None  # the status with which it answers all

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def put(self, repo: str, folder: Path, below: str = "") -> None:
        """Take in the files of a folder."""
        files = self.repos.setdefault(repo, {})
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                files[below + str(path.relative_to(folder))] = path.read_bytes()

    def sha(self, repo: str) -> str:
        """The commit: a hash of what is there."""
        return hashlib.sha1(repr(sorted(self.repos[repo].items())).encode()).hexdigest()


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if self.server.refuses:
            return self.say(self.server.refuses, {})
        if parts[:2] == ["api", "datasets"] and "/".join(parts[2:4]) not in self.server.repos:
            return self.say(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        if parts[:2] == ["api", "datasets"]:
            return self.about("/".join(parts[2:4]), parts[4:])
        if parts[0] == "datasets" and parts[3:4] == ["resolve"]:
            return self.file("/".join(parts[1:3]), "/".join(parts[5:]))
        return self.say(404, {"error": self.path})

    do_HEAD = do_GET

    def about(self, repo: str, rest: list[str]) -> None:
        """What a data set holds: its listing, or its tree."""
        files = self.server.repos[repo]
        sha = self.server.sha(repo)
        if rest[:1] == ["revision"] and rest[1] not in ("main", sha):
            return self.say(404, {"error": "Revision not found"}, {"X-Error-Code": "RevisionNotFound"})
        if rest[:1] == ["tree"]:
            return self.say(200, [{"type": "file", "path": path, "size": len(data), "oid": oid(data)}
                                  for path, data in files.items()])  # fmt: skip
        siblings = [{"rfilename": path} for path in files]
        return self.say(200, {"id": repo, "sha": sha, "siblings": siblings, "tags": [], "private": False})

    def file(self, repo: str, path: str) -> None:
        data = self.server.repos.get(repo, {}).get(path)
        if data is None:
            return self.say(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
        if self.command == "GET":
            self.server.fetched.append(path)
        headers = {"ETag": f'"{oid(data)}"', "X-Repo-Commit": self.server.sha(repo), "Content-Length": str(len(data))}
        return self.say(200, data, headers)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = urlsplit(self.path).path
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.say(401, {"error": "Invalid username or password."})
        if self.server.refuses:
            return self.say(self.server.refuses, {"error": "no"})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path == "/api/validate-yaml":
            return self.say(200, {"errors": [], "warnings": []})
        repo = "/".join(path.split("/")[3:5])
        if path.endswith("/preupload/main"):
            asked = [file["path"] for file in json.loads(body)["files"]]
            return self.say(200, {"files": [{"path": each, "uploadMode": "regular", "shouldIgnore": False}
                                            for each in asked]})  # fmt: skip
        if path.endswith("/commit/main"):
            return self.commit(repo, [json.loads(line) for line in body.splitlines()])
        return self.say(404, {"error": path})

    def create(self, asked: dict[str, Any]) -> None:
        repo = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else f"somebody/{asked['name']}"
        assert asked["type"] == "dataset"
        if repo in self.server.repos:
            return self.say(409, {"error": "You already created this dataset repo", "url": f"{self.server.url}/{repo}"})
        self.server.repos[repo] = {}
        self.server.private[repo] = bool(asked.get("private")) or asked.get("visibility") == "private"
        return self.say(200, {"url": f"{self.server.url}/datasets/{repo}"})

    def commit(self, repo: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.server.repos[repo][line["value"]["path"]] = content
            else:
                self.server.commits.append((repo, line["value"]["summary"]))
        url = f"{self.server.url}/datasets/{repo}/commit/{self.server.sha(repo)}"
        return self.say(200, {"commitUrl": url, "commitOid": self.server.sha(repo), "success": True})

    def say(self, status: int, said: Any, headers: dict[str, str] | None = None) -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(data)),
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        pass


def oid(data: bytes) -> str:
    """The hash by which git knows a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@contextmanager
def standing_in(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub that huggingface_hub talks to in this process, with a cache and a token of its own."""
    from huggingface_hub import constants

    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    address = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    for name, value in {"ENDPOINT": server.url, "HUGGINGFACE_CO_URL_TEMPLATE": address, "HF_HUB_OFFLINE": False,
                        "HF_HUB_CACHE": str(cache), "HF_TOKEN_PATH": str(cache / "token")}.items():  # fmt: skip
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(secrets, "_given", set())  # tokens that later tests need not hide
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
