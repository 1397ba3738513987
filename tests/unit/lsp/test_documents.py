"""What is analysed, in which order, and what is published: with an analysis that the test steers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tilecheck.lsp.analysed import Analysed
from tilecheck.lsp.documents import Documents
from tilecheck.lsp.verifier import FailedError, RefusedError
from tilecheck.model import Report


@dataclass
class Steered:
    """Analyses end when `go` is set. Mutable: it notes what happened."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[tuple[str, bytes]] = field(default_factory=list)
    cancelled: list[bytes] = field(default_factory=list)
    texts: list[dict[str, bytes]] = field(default_factory=list)
    published: list[tuple[str, int, str]] = field(default_factory=list)
    error: Exception | None = None

    async def verify(self, path: str, data: bytes, texts: dict[str, bytes]) -> Report:
        self.begun.append((path, data))
        self.texts.append(texts)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(data)
            raise
        if self.error is not None:
            raise self.error
        return Report((), (), 1)

    def publish(self, analysed: Analysed) -> None:
        self.published.append((analysed.path, analysed.version, analysed.problem))


Story = Callable[[Steered, Documents], Awaitable[None]]


def told(story: Story) -> Steered:
    async def run() -> Steered:
        steered = Steered()
        documents = Documents(steered.verify, steered.publish)
        try:
            await story(steered, documents)
        finally:
            await documents.stop()
        return steered

    return asyncio.run(asyncio.wait_for(run(), 20))


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - what it waits for is no event
        await asyncio.sleep(0.001)


def test_the_newest_text_is_published_and_the_others_are_cancelled() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        documents.open("file:///a.py", 1, "one")
        await until(lambda: bool(steered.begun))
        documents.change("file:///a.py", 2, "two")
        documents.change("file:///a.py", 3, "three")
        steered.go.set()
        result = await documents.result("file:///a.py")
        assert result is not None
        assert (result.version, result.data) == (3, b"three")

    steered = told(story)
    assert steered.cancelled == [b"one"]
    assert [data for _, data in steered.begun] == [b"one", b"three"]  # two was overtaken while it rested
    assert steered.published == [("/a.py", 3, "")]


def test_one_edit_is_analysed_at_once_and_a_series_of_them_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilecheck.lsp.documents.DEBOUNCE_S", 0.5)

    async def story(steered: Steered, documents: Documents) -> None:
        loop = asyncio.get_running_loop()
        documents.open("file:///a.py", 1, "one")
        await until(lambda: len(steered.begun) == 1)
        began = loop.time()
        documents.change("file:///a.py", 2, "two")
        await until(lambda: len(steered.begun) == 2)
        assert loop.time() - began < 0.4
        for version in range(3, 6):
            documents.change("file:///a.py", version, str(version))
            await asyncio.sleep(0.05)
        ended = loop.time() - 0.05
        steered.go.set()
        await documents.result("file:///a.py")
        assert loop.time() - ended > 0.45

    assert [data for _, data in told(story).begun] == [b"one", b"two", b"5"]


def test_a_closed_document_is_not_published_and_nobody_waits_for_it() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        documents.open("file:///a.py", 1, "one")
        waiting = asyncio.ensure_future(documents.result("file:///a.py"))
        await until(lambda: bool(steered.begun))
        assert documents.close("file:///a.py")
        assert await waiting is None
        assert not documents.close("file:///a.py")
        documents.change("file:///a.py", 2, "two")
        steered.go.set()
        await asyncio.sleep(0.1)

    steered = told(story)
    assert steered.cancelled == [b"one"]
    assert steered.published == []


def test_what_was_edited_last_comes_first() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        for name in "abc":
            documents.open(f"file:///{name}.py", 1, "")
        documents.change("file:///a.py", 2, "edited")
        steered.go.set()
        for name in "abc":
            await documents.result(f"file:///{name}.py")

    assert [path for path, _, _ in told(story).published] == ["/a.py", "/c.py", "/b.py"]


def test_who_reads_an_edited_text_is_analysed_again_with_it() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        steered.go.set()
        documents.open("file:///p/sizes.py", 1, "BY = 1")
        documents.open("file:///p/k.py", 1, "from sizes import BY")
        documents.open("file:///p/other.py", 1, "import numpy")
        await until(lambda: len(steered.published) == 3)
        steered.published.clear()
        documents.change("file:///p/sizes.py", 2, "BY = 2")
        await until(lambda: len(steered.published) == 2)
        await asyncio.sleep(0.1)

    steered = told(story)
    assert [path for path, _, _ in steered.published] == ["/p/sizes.py", "/p/k.py"]
    assert steered.texts[-1]["/p/sizes.py"] == b"BY = 2"
    assert "/p/k.py" not in steered.texts[-1]  # its own text is not one that stands for another


def test_a_package_is_read_by_its_name() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        steered.go.set()
        documents.open("file:///p/sizes/__init__.py", 1, "BY = 1")
        documents.open("file:///p/k.py", 1, "from sizes import BY")
        await until(lambda: len(steered.published) == 2)
        documents.change("file:///p/sizes/__init__.py", 2, "BY = 2")
        await until(lambda: len(steered.published) == 4)

    assert [path for path, _, _ in told(story).published][2:] == ["/p/sizes/__init__.py", "/p/k.py"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RefusedError("no key `x`"), "tilecheck cannot run: no key `x`"),
        (FailedError("Traceback\nKeyError: 1"), "tilecheck met a bug of its own: KeyError: 1"),
        (FailedError(""), "tilecheck met a bug of its own: no answer"),
    ],
)
def test_a_failure_is_shown_and_the_next_edit_is_analysed(error: Exception, says: str) -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        steered.error = error
        steered.go.set()
        documents.open("file:///a.py", 1, "")
        await documents.result("file:///a.py")
        steered.error = None
        documents.change("file:///a.py", 2, "")
        await documents.result("file:///a.py")

    assert told(story).published == [("/a.py", 1, says), ("/a.py", 2, "")]


def test_files_that_no_document_shows() -> None:
    async def story(steered: Steered, documents: Documents) -> None:
        steered.go.set()
        documents.open("file:///a.py", 1, "")
        await documents.result("file:///a.py")
        documents.touch_all()
        await documents.result("file:///a.py")

    assert len(told(story).published) == 2
