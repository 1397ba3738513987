"""Writes the queries that decided the obligations of one kernel: `tilecheck verify --dump-smt DIR`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilecheck.certificate.index import folder_name
from tilecheck.errors import UsageError
from tilecheck.model import Site
from tilecheck.proof.certificates.queries import refuted_texts
from tilecheck.proof.decide import Decision


def write_queries(name: str, decision: Decision, place: Callable[[Site], str], folder: Path, file: str) -> None:
    """Write a file for each query that the solver refuted to prove an obligation of the kernel `name`.

    Raises:
        UsageError: another kernel has written to the same place.
    """
    own = folder / folder_name(file, name)
    for number, settled in enumerate(decision.settled, 1):
        where = ", ".join(map(place, settled.obligation.sites))
        texts = refuted_texts(settled, f"{name} of {file}", where, number)
        for k, text in enumerate(texts, 1):
            path = own / f"{number:03}-{settled.obligation.rule}-{k}.smt2"
            if path.exists():
                raise UsageError(
                    f"the queries of two kernels would share the folder {own}", "verify one of them"
                )
            own.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
