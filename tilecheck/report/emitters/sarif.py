"""SARIF 2.1.0: one run with a result for each finding, for code scanning services and viewers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from tilecheck.demand import passes
from tilecheck.exit_codes import ExitCode
from tilecheck.history.fingerprint import Identity, identities
from tilecheck.hygiene import UNREADABLE_SOURCE
from tilecheck.model import Diagnostic, KernelReport, Severity, Site, Verdict
from tilecheck.report.emitters.json import premise
from tilecheck.report.emitters.sarif_flows import code_flow
from tilecheck.report.emitters.sarif_rules import LEVELS, describe_rule
from tilecheck.report.findings import Owners, is_open, paragraph, told
from tilecheck.report.places import Places, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.verdicts import grounds
from tilecheck.report.versions import versions

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
# A kernel that is trusted passes the gate because a person answers for it, and only a person can judge that.
_KINDS = {Verdict.PROVED: "pass", Verdict.CONDITIONAL: "pass", Verdict.TRUSTED: "review"}


def render(run: Run) -> str:
    """The log as one JSON object with a final newline."""
    return json.dumps(to_object(run), indent=2) + "\n"


def to_object(run: Run) -> dict[str, Any]:
    """The log as plain dictionaries and lists."""
    log = _Log(run)
    results = list(log.results())
    tool = versions()
    rules = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": tool["name"],
                        "version": tool["version"],
                        "semanticVersion": tool["version"],
                        "properties": {"z3": tool["z3"]},
                        "rules": list(map(describe_rule, rules)),
                    }
                },
                "invocations": [log.invocation()],
                "originalUriBaseIds": {
                    _ROOT: {"uri": f"file://{quote(os.fsencode(run.root.folder.rstrip('/')))}/"}
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
                # Results for what passes are asked for seldom: what a pass rests on stands here always.
                "properties": {"premises": log.premises()},
            }
        ],
    }


class _Log:
    """The parts of the log of one run that speak of places."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.places = Places(run.report.sources)
        self.kernels = kernels_in_order(run.report.kernels)
        self.owners = Owners(run.report)

    def results(self) -> Iterator[dict[str, Any]]:
        report = self.run.report
        findings = told(report, suppressed=True)
        # Either every result says whether it is suppressed, or none does.
        says = any(diagnostic.suppressed for diagnostic in findings)
        named = identities(findings, report.sources, path=self.run.root.path)
        for diagnostic, identity in zip(findings, named, strict=True):
            result = self._finding(diagnostic, identity)
            if says:
                why = diagnostic.suppression
                result["suppressions"] = [{"kind": why.kind, "justification": why.reason}] if why else []
            yield result
        if self.run.includes_pass:
            for kernel in self.kernels:
                if kernel.verdict in _KINDS:
                    yield self._passed(kernel) | ({"suppressions": []} if says else {})

    def premises(self) -> list[dict[str, Any]]:
        """The contracts that verdicts rest on, with their kernels."""
        return [
            {"kernel": kernel.name, "file": self.run.root.path(kernel.site.file), **premise(given)}
            for kernel in self.kernels
            for given in kernel.premises
            if passes(kernel)
        ]

    def _finding(self, diagnostic: Diagnostic, identity: Identity) -> dict[str, Any]:
        undecided = is_open(diagnostic)
        location = self._location(diagnostic.site)
        if diagnostic.kernel:
            location["logicalLocations"] = [{"fullyQualifiedName": diagnostic.kernel, "kind": "function"}]
        result: dict[str, Any] = {
            "ruleId": diagnostic.code,
            "kind": "open" if undecided else "fail",
            "level": "none" if undecided else LEVELS[diagnostic.severity],
            "message": {"text": paragraph(diagnostic, self._link(diagnostic))},
            "locations": [location],
            "partialFingerprints": {"tilecheck/v1": identity.digest()},
        }
        if diagnostic.related:
            result["relatedLocations"] = [
                {
                    "id": number,
                    **self._location(related.site),
                    "message": {"text": related.message or "and here"},
                }
                for number, related in enumerate(diagnostic.related, start=1)
            ]
        if diagnostic.witness is not None:
            result["codeFlows"] = [code_flow(diagnostic, self.owners.of(diagnostic), self._location)]
        elif diagnostic.severity is Severity.ERROR and not undecided:
            result["properties"] = {"flow": "none: no block has to run to show it"}
        return result

    def _link(self, diagnostic: Diagnostic) -> Callable[[Site], str]:
        """Writes related places as links to them, which viewers need to show them."""
        numbers = {related.site: number for number, related in enumerate(diagnostic.related, start=1)}

        def link(site: Site) -> str:
            text = self.run.root.place(self.places.of(site))
            escaped = re.sub(r"([\\\[\]])", r"\\\1", text)
            return f"[{escaped}]({numbers[site]})"

        return link

    def _passed(self, kernel: KernelReport) -> dict[str, Any]:
        word = kernel.verdict.value
        rests_on = list(grounds(kernel, self.places))
        return {
            "ruleId": word,
            "kind": _KINDS[kernel.verdict],
            "level": "none",
            "message": {"text": "\n".join([f"`{kernel.name}` is {word}", *rests_on])},
            "locations": [self._location(kernel.site)],
            "properties": {
                "conditions": list(kernel.conditions),
                "standing": list(kernel.standing),
                "premises": [premise(p) for p in kernel.premises],
            },
        }

    def _location(self, site: Site) -> dict[str, Any]:
        place = self.places.of(site)
        region = {
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.end_line,
            "endColumn": place.end_column,
        }
        return {"physicalLocation": {"artifactLocation": self._artifact(place.file), "region": region}}

    def _artifact(self, file: str) -> dict[str, str]:
        path = self.run.root.path(file)
        if PurePosixPath(path).is_absolute():
            return {"uri": f"file://{quote(os.fsencode(path))}"}
        # A first part such as `a:b` would be taken for the scheme of an absolute URI, so `:` is quoted too.
        return {"uri": quote(os.fsencode(path)), "uriBaseId": _ROOT}

    def invocation(self) -> dict[str, Any]:
        """How the run ended. Files that were not read do not make it a failed one: services refuse those. A run
        that looked at nothing is one, because they take what a report does not list for fixed."""
        crashed = [judged for judged in self.run.report.judged if judged.internal_error is not None]
        unread = [d for d in self.run.report.diagnostics if d.code == UNREADABLE_SOURCE]
        empty = self.run.exit_code == ExitCode.USAGE
        return {
            "executionSuccessful": not crashed and not empty,
            "exitCode": int(self.run.exit_code),
            "toolExecutionNotifications": [
                *(self._notification(d.code, d.message, d.site) for d in unread),
                *(
                    self._notification("unknown/internal", f"a bug in tilecheck ended `{k.name}`", k.site)
                    for k in crashed
                ),
                *([self._notification("no-kernels", "no kernels were found")] if empty else []),
            ],
        }

    def _notification(self, code: str, text: str, site: Site | None = None) -> dict[str, Any]:
        place = {} if site is None else {"locations": [self._location(site)]}
        return {"descriptor": {"id": code}, "level": "error", "message": {"text": text}, **place}
