"""What the configuration makes of findings: their level, and which leave the exit code.

A verdict is never touched. A finding that is ignored stays in the report, marked with where and why; so a
kernel that is violated is still counted as violated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilecheck.config.files import Configs
from tilecheck.config.patterns import absolute
from tilecheck.hygiene import NEVER_SUPPRESSED
from tilecheck.model import Diagnostic, Severity, Suppression


def configured(diagnostics: Iterable[Diagnostic], configs: Configs) -> tuple[Diagnostic, ...]:
    """The findings as the configuration of their files has them."""
    return tuple(_configured(diagnostic, configs) for diagnostic in diagnostics)


def _configured(diagnostic: Diagnostic, configs: Configs) -> Diagnostic:
    settings = configs.of(diagnostic.site.file)
    level = settings.level(diagnostic.code)
    if level is not None and diagnostic.severity is not Severity.ERROR:
        diagnostic = replace(diagnostic, severity=level)
    if diagnostic.suppressed or diagnostic.code in NEVER_SUPPRESSED:
        return diagnostic
    why = settings.why_ignored(diagnostic.code, absolute(diagnostic.site.file))
    return diagnostic if why is None else replace(diagnostic, suppression=Suppression("external", why))
