"""The process that verifies, and what happens when it hangs or ends."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tilecheck.lsp import verifier as module
from tilecheck.lsp.verifier import FailedError, RefusedError, Verifier
from tilecheck.model import Verdict

RACY = b"""import cuda.tile as ct


@ct.kernel
def shift(x, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i + 1,), tile=t)
"""
# Takes far longer than any test waits.
MANY = b"import cuda.tile as ct\n" + b"".join(
    RACY.partition(b"\n\n\n")[2].replace(b"shift", b"k%d" % n).replace(b"+ 1", b"+ %d" % (n + 1))
    for n in range(300)
)
DEAF = "import sys, time; sys.stdin.buffer.read(1); time.sleep(1000)  # {path!r}"


def run(story: Callable[[Verifier], Awaitable[Any]], *, patience_s: float = 60) -> Any:
    async def told() -> Any:
        verifier = Verifier(patience_s=patience_s)
        try:
            return await asyncio.wait_for(story(verifier), 60)
        finally:
            verifier.stop()

    return asyncio.run(told())


def test_answers_come_and_a_cancelled_request_ends_early() -> None:
    async def story(verifier: Verifier) -> Any:
        hard = asyncio.ensure_future(verifier.ask("verify", "/many.py", MANY, {}))
        await asyncio.sleep(0.5)
        hard.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hard
        report = await verifier.ask("verify", "/k.py", RACY, {})
        again = await verifier.ask("verify", "/k.py", RACY + b"# a comment\n", {})
        assert verifier.starts == 1  # it was not replaced
        return report, again

    report, again = run(story)
    assert [k.verdict for k in report.kernels] == [Verdict.VIOLATED]
    assert [(k.verdict, k.cached) for k in again.kernels] == [(Verdict.VIOLATED, True)]


def test_the_process_answers_that_a_request_was_cancelled() -> None:
    command = [sys.executable, "-c", module._BEGIN.format(path=sys.path)]  # noqa: SLF001 - as the server starts it
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for request in (("verify", 1, "/many.py", MANY, {}), ("verify", 2, "/k.py", RACY, {}), ("cancel", 2)):
            pickle.dump(request, process.stdin)
        process.stdin.flush()
        time.sleep(1)
        pickle.dump(("cancel", 1), process.stdin)
        process.stdin.close()
        answers = [pickle.load(process.stdout)[:2] for _ in range(2)]
        assert process.wait(60) == 0
    assert answers == [(1, "cancelled"), (2, "cancelled")]


def test_a_process_that_ends_is_replaced() -> None:
    async def story(verifier: Verifier) -> Any:
        verifier.start()
        waiting = asyncio.ensure_future(verifier.ask("verify", "/many.py", MANY, {}))
        await asyncio.sleep(0.1)
        os.kill(verifier.process_id, signal.SIGKILL)
        with pytest.raises(FailedError, match="has ended"):
            await waiting
        report = await verifier.ask("verify", "/k.py", RACY, {})
        assert verifier.starts == 2
        return report

    assert len(run(story).kernels) == 1


def test_a_process_that_does_not_hear_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(verifier: Verifier) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_BEGIN", DEAF)
            verifier.start()
        deaf = asyncio.ensure_future(verifier.ask("verify", "/k.py", RACY, {}))
        await asyncio.sleep(0.1)
        deaf.cancel()
        report = await verifier.ask("verify", "/k.py", RACY, {})  # of the same process at first
        assert verifier.starts == 2
        return report

    assert len(run(story, patience_s=0.2).kernels) == 1


def test_bugs_and_refusals_are_errors_and_the_process_goes_on(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tilecheck]\nnonsense = 1\n")

    async def story(verifier: Verifier) -> Any:
        with pytest.raises(FailedError, match="KeyError"):
            await verifier.ask("nothing")
        with pytest.raises(RefusedError, match="nonsense"):
            await verifier.ask("verify", str(tmp_path / "k.py"), RACY, {})
        assert verifier.starts == 1
        return await verifier.ask("borrows", "/k.py", RACY, {}, "shift")

    assert len(run(story)["x"]) == 2
