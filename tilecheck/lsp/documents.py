"""The open documents, and one analysis at a time: that of the text that was edited last comes first.

An edit of a text that had rested is analysed at once, those that follow when it rests again. An edit cancels
the analysis of what it replaced, and what is published is always the result of the newest text.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import field
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.uris import path_of
from tilecheck.lsp.verifier import FailedError, RefusedError
from tilecheck.model import Report
from tilecheck.text import encode

DEBOUNCE_S = 0.05
Verify = Callable[[str, bytes, dict[str, bytes]], Awaitable[Report]]
Publish = Callable[[Analysed], None]


@dataclass(slots=True, eq=False)
class Document:
    """One open document. Mutable: its text changes. `result` is that of the newest text, or None."""

    uri: str
    path: str
    version: int
    data: bytes = b""  # as the file would be saved
    text: bytes = b""  # in UTF-8
    due: float = 0.0  # when it is to be analysed
    changed: float = 0.0  # when it was edited last
    rank: int = 0  # when it was opened or edited last, as a count
    edits: int = 0
    result: Analysed | None = None
    known: Analysed | None = None  # the last result, of whatever text
    done: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: bool = False


class Documents:
    """All open documents. `verify` gives the report of a text at a path, with texts that stand for other files;
    `publish` is called with each result."""

    def __init__(self, verify: Verify, publish: Publish, *, root: str = ".", encoding: str = "utf-16") -> None:
        self.root = root
        self.encoding = encoding
        self._verify = verify
        self._publish = publish
        self._open: dict[str, Document] = {}
        self._rank = 0
        self._wake = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self._running: tuple[Document, asyncio.Task[None]] | None = None

    # ---- what the client tells --------------------------------------------------------------------------

    def open(self, uri: str, version: int, text: str) -> None:
        """A document was opened: it is analysed at once."""
        self.close(uri)
        document = self._open[uri] = Document(uri, path_of(uri, self.root), version)
        self._set(document, version, text, 0.0)

    def change(self, uri: str, version: int, text: str) -> None:
        """A document has a new text. The others that read it are analysed again after it."""
        document = self._open.get(uri)
        if document is not None:
            now = asyncio.get_running_loop().time()
            rested, document.changed = now - document.changed > DEBOUNCE_S, now
            self._set(document, version, text, 0.0 if rested else DEBOUNCE_S)

    def close(self, uri: str) -> bool:
        """A document was closed: nobody waits for its result. Whether it was open."""
        document = self._open.pop(uri, None)
        if document is None:
            return False
        document.is_closed = True
        document.done.set()
        self._cancel(document)
        self._touch_readers(document)
        return True

    def touch_all(self) -> None:
        """Files changed that no document shows: analyse all documents again."""
        for document in self._open.values():
            self._touch(document, DEBOUNCE_S)

    def _set(self, document: Document, version: int, text: str, delay: float) -> None:
        document.version = version
        document.data, document.text = encode(text), text.encode(errors="replace")
        self._rank += 1
        document.rank = self._rank
        self._touch(document, delay)
        self._touch_readers(document)

    def _touch_readers(self, changed: Document) -> None:
        for other in self._open.values():
            if other is not changed and _reads(other, changed):
                self._touch(other, DEBOUNCE_S)

    def _touch(self, document: Document, delay: float) -> None:
        document.edits += 1
        document.result = None
        document.done.clear()
        document.due = asyncio.get_running_loop().time() + delay
        self._cancel(None)
        self._wake.set()
        if self._loop_task is None:
            self._loop_task = asyncio.ensure_future(self._work())

    def _cancel(self, document: Document | None) -> None:
        """Cancel the analysis that runs, or that of `document` alone: it begins anew if it is still wanted."""
        if self._running is not None and document in (None, self._running[0]):
            self._running[1].cancel()

    # ---- what the client asks for -----------------------------------------------------------------------

    def document(self, uri: str) -> Document | None:
        return self._open.get(uri)

    async def result(self, uri: str) -> Analysed | None:
        """The result for the newest text, once there is one; None for a document that is not open."""
        while (document := self._open.get(uri)) is not None and document.result is None:
            await document.done.wait()
        return None if document is None else document.result

    def texts(self, but: Document | None = None) -> dict[str, bytes]:
        """The texts of the documents, by path."""
        return {d.path: d.data for d in self._open.values() if d is not but}

    async def stop(self) -> None:
        """Analyse nothing any more."""
        for uri in list(self._open):
            self.close(uri)
        if self._loop_task is not None:
            self._loop_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop_task

    # ---- the work ---------------------------------------------------------------------------------------

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            waiting = [d for d in self._open.values() if d.result is None]
            if not waiting:
                await self._wake.wait()
                continue
            document = max(waiting, key=lambda d: d.rank)
            delay = document.due - loop.time()
            if delay > 0:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), delay)
                continue
            task = asyncio.ensure_future(self._analyse(document))
            self._running = document, task
            try:
                await asyncio.wait([task])
            finally:
                self._running = None
                task.cancel()

    async def _analyse(self, document: Document) -> None:
        edits, version = document.edits, document.version
        problem, report = "", Report((), (), 1)
        try:
            report = await self._verify(document.path, document.data, self.texts(but=document))
        except RefusedError as error:
            problem = f"tilecheck cannot run: {error}"
        except FailedError as error:
            last = (str(error).strip() or "no answer").splitlines()[-1]
            problem = f"tilecheck met a bug of its own: {last}"
        if document.is_closed or document.edits != edits:  # it was edited, although nothing was cancelled
            return
        result = Analysed(document.uri, document.path, version, document.text, report, problem, self.encoding)
        document.result = document.known = result
        document.done.set()
        self._publish(result)


def _reads(document: Document, changed: Document) -> bool:
    """Whether the analysis of a document may read the text of another: it did, or it names its module."""
    known = () if document.known is None else document.known.report.kernels
    files = {f for kernel in known if kernel.terms is not None for f, _ in kernel.terms.files}
    if os.path.realpath(changed.path) in map(os.path.realpath, files):
        return True
    path = Path(changed.path)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    return re.search(rb"\b" + re.escape(stem.encode()) + rb"\b", document.text) is not None
