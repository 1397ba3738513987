"""A client of the server: JSON-RPC over its stdin and stdout, as an editor speaks it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60.0
PUSH = {
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor"]}}},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
    "workspace": {"workspaceEdit": {"documentChanges": True}},
}
COMMAND = [sys.executable, "-m", "tilecheck", "server", "--stdio"]


class Client:
    """One running server. Messages that nobody waited for are kept in `seen`."""

    def __init__(self, folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder)
        self.seen: list[dict[str, Any]] = []
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._count = 0
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._read, self._read_errors)]
        self.errors = b""
        self.opened: set[str] = set()
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        stream = self.process.stdout
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = stream.readline()
            self._arrived.put(json.loads(stream.read(length)))
        self._arrived.put(None)

    def _read_errors(self) -> None:
        self.errors = self.process.stderr.read()

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: object = None) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: object = None) -> int:
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        return self._count

    def answer(self, number: int) -> dict[str, Any]:
        return self._take(lambda m: m.get("id") == number and "method" not in m)

    def request(self, method: str, params: object = None) -> Any:
        answer = self.answer(self.ask(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, method: str, which: Callable[[Any], bool] = lambda _: True) -> Any:
        """The parameters of a message of the server; a request is answered with null."""
        message = self._take(lambda m: m.get("method") == method and which(m.get("params")))
        if "id" in message:
            self.send({"id": message["id"], "result": None})
        return message.get("params")

    def _take(self, is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for message in self.seen:
            if is_meant(message):
                self.seen.remove(message)
                return message
        end = time.monotonic() + PATIENCE_S
        while True:
            message = self._arrived.get(timeout=max(end - time.monotonic(), 0.01))
            assert message is not None, f"the server ended: {self.errors.decode()}"
            if is_meant(message):
                return message
            self.seen.append(message)

    # ---- what an editor does ------------------------------------------------------------------------------

    def begin(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        told = self.request("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
        self.notify("initialized", {})
        return told["capabilities"]

    def open(self, path: Path, text: str, version: int = 1) -> str:
        uri = path.as_uri()
        self.opened.add(uri)
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, version: int, text: str) -> None:
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def published(self, uri: str, version: int | None) -> list[dict[str, Any]]:
        """The diagnostics of one version of a document, as the server pushes them."""
        return self.wait(
            "textDocument/publishDiagnostics", lambda p: p["uri"] == uri and p.get("version") == version
        )["diagnostics"]

    def versions(self, uri: str) -> list[int]:
        """The versions of a document whose diagnostics came and were not waited for."""
        pushed = (m["params"] for m in self.seen if m.get("method") == "textDocument/publishDiagnostics")
        return [p["version"] for p in pushed if p["uri"] == uri and "version" in p]

    def end(self) -> int:
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    started = Client(tmp_path)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    started = Client(tmp_path_factory.mktemp("server"))
    try:
        started.begin(PUSH)
        yield started
    finally:
        started.close()


@pytest.fixture
def pushed(_running: Client) -> Iterator[Client]:
    """A client that takes diagnostics as the server pushes them; the server is that of the other tests."""
    yield _running
    for uri in _running.opened:
        _running.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    _running.opened.clear()
    _running.seen.clear()
