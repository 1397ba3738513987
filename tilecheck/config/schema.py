"""The keys of `[tool.tilecheck]`: how each is read, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilecheck import __version__
from tilecheck.config.kernels import read_entries
from tilecheck.config.patterns import Pattern, absolute, compiled
from tilecheck.config.selectors import selector
from tilecheck.config.settings import DEFAULT, EXCLUDED, Ignored, Said, Settings
from tilecheck.config.versions import is_met
from tilecheck.config.words import check_keys
from tilecheck.errors import UsageError, did_you_mean
from tilecheck.hygiene import NEVER_SUPPRESSED, STALE_ENTRY
from tilecheck.model import Severity
from tilecheck.options import DEMANDS, FORMATS

TABLE = "tool.tilecheck"
_BUDGET = re.compile(r"([0-9]+)([kM]?)")
_UNITS = {"": 1, "k": 1000, "M": 1_000_000}
_MOST = 2**32 - 1  # the solver counts its steps in 32 bits
_LEVELS = {severity.word: severity for severity in Severity} | {"warn": Severity.WARNING}


def defaults(folder: Path) -> Settings:
    """What counts where nobody says anything."""
    return Settings(folder=folder, exclude=tuple(Pattern(text, folder, DEFAULT) for text in EXCLUDED))


def settings_of(said: Sequence[Said], file: Path | None, folder: Path) -> Settings:
    """The settings that a list of values comes to. A later value adds to an earlier one of the same key, or
    takes its place, as the key has it.

    Raises:
        UsageError: a key or a value is not understood, or another version of tilecheck is asked for.
    """
    settings = replace(defaults(folder), file=file, said=tuple(said))
    for one in sorted(said, key=lambda one: one.key == "extend-exclude"):  # after what it extends
        check_keys((one.key,), tuple(KEYS), _table(one))
        settings = KEYS[one.key](settings, one)
    return settings


def _table(said: Said) -> str:
    return said.origin if said.file is None else f"{said.origin}: `[{TABLE}]`"


def _wrong(said: Said, must: str, hint: str | None = None) -> UsageError:
    return UsageError(f"{_table(said)}: `{said.key}` must be {must}", hint)


def _text(said: Said) -> str:
    if not isinstance(said.value, str) or not said.value:
        raise _wrong(said, "a text")
    return said.value


def _texts(said: Said, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise _wrong(said, "a list of texts")
    return tuple(value)


def _patterns(said: Said, texts: Sequence[str]) -> tuple[Pattern, ...]:
    try:
        for text in texts:
            compiled(text)
    except re.error as problem:
        raise UsageError(f"{_table(said)}: `{said.key}` holds a text that is no pattern: {problem}") from None
    return tuple(Pattern(text, said.base, said.origin) for text in texts)


def _rules(said: Said, value: object) -> tuple[str, ...]:
    where = f"{_table(said)}: `{said.key}`"
    return tuple(selector(word, where) for word in _texts(said, value))


def _required_version(settings: Settings, said: Said) -> Settings:
    try:
        met = is_met(_text(said), __version__)
    except ValueError as clause:
        message = f"{_table(said)}: `{said.key}`: `{clause}` is no demand on a version"
        raise UsageError(message, 'write for example ">=0.1,<0.2"') from None
    if not met:
        message = f"{_table(said)} demands tilecheck {said.value}, and this is tilecheck {__version__}"
        raise UsageError(message, f"install it: pip install 'tilecheck{said.value}'")
    return settings


def _include(settings: Settings, said: Said) -> Settings:
    return replace(settings, include=_patterns(said, _texts(said, said.value)))


def _exclude(settings: Settings, said: Said) -> Settings:
    return replace(settings, exclude=_patterns(said, _texts(said, said.value)))


def _extend_exclude(settings: Settings, said: Said) -> Settings:
    return replace(settings, exclude=settings.exclude + _patterns(said, _texts(said, said.value)))


def _select(settings: Settings, said: Said) -> Settings:
    if not said.value:
        raise _wrong(said, "a list of at least one rule", '`select = ["TC"]` selects all')
    return replace(settings, select=_rules(said, said.value))


def _ignore(settings: Settings, said: Said) -> Settings:
    rules = _rules(said, said.value)
    _may_be_ignored(said, rules)
    return replace(settings, ignored=(*settings.ignored, Ignored(rules, f"`ignore` of {said.origin}")))


def _may_be_ignored(said: Said, rules: Iterable[str]) -> None:
    """A whole family may be ignored: these of its rules then are not."""
    for code in rules:
        if code in NEVER_SUPPRESSED:
            raise UsageError(
                f"{_table(said)}: `{said.key}`: {code} cannot be ignored", f"tilecheck explain {code}"
            )


def _levels(settings: Settings, said: Said) -> Settings:
    levels: dict[str, Severity | None] = dict(settings.levels)
    ignored = []
    for word, level in _pairs(said):
        where = f"{_table(said)}: `levels`"
        code = selector(word, where)
        if code == STALE_ENTRY:
            message = f"{where}: {code} has no level of its own"
            raise UsageError(message, "it is an error on CI, and a warning elsewhere")
        if level == "ignore":
            ignored.append(code)
        elif level not in _LEVELS:
            raise UsageError(f"{where}: `{word}` must be error, warning, info or ignore")
        elif _LEVELS[level] is not Severity.ERROR:
            _may_be_lowered(code, level, where)
        levels[code] = None if level == "ignore" else _LEVELS[level]
    _may_be_ignored(said, ignored)
    reason = f"`levels` of {said.origin}"
    more = (Ignored(tuple(ignored), reason),) if ignored else ()
    return replace(settings, levels=tuple(levels.items()), ignored=settings.ignored + more)


def _may_be_lowered(prefix: str, level: str, where: str) -> None:
    """An error says that a kernel, or a comment, is wrong. One that may stand is ignored, where the summary and
    `audit` count it; to call it a warning would let a violated kernel pass unseen."""
    from tilecheck.registry import rule_files, rule_level  # lazy: few configurations state levels

    for file in rule_files():
        if file.code.startswith(prefix) and rule_level(file) is Severity.ERROR:
            raise UsageError(
                f"{where}: {file.code} ({file.name}) is an error, and cannot be made {level}",
                "ignore it where it may stand, with a reason: it is then out of the exit code, and counted",
            )


def _pairs(said: Said) -> list[tuple[str, Any]]:
    if not isinstance(said.value, dict):
        raise _wrong(said, "a table", f"write `[{TABLE}.{said.key}]`")
    return list(said.value.items())


def _per_file_ignores(settings: Settings, said: Said) -> Settings:
    form = '{ rules = ["TC501"], reason = "why" }'
    ignored = list(settings.ignored)
    for text, entry in _pairs(said):
        where = f"{_table(said)}: `{said.key}`: `{text}`"
        if not isinstance(entry, dict):
            raise UsageError(f"{where} must be a table", f'write `"{text}" = {form}`')
        check_keys(entry, ("rules", "reason"), where)
        reason = entry.get("reason")
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(f"{where} gives no reason", f'write `"{text}" = {form}`')
        if not entry.get("rules"):
            raise UsageError(f"{where} names no rule", f'write `"{text}" = {form}`')
        rules = _rules(said, entry["rules"])
        _may_be_ignored(said, rules)
        (pattern,) = _patterns(said, [text])
        ignored.append(Ignored(rules, reason.strip(), pattern))
    return replace(settings, ignored=tuple(ignored))


def _fail_on(settings: Settings, said: Said) -> Settings:
    if not isinstance(said.value, str) or said.value not in _LEVELS:
        raise _wrong(said, "error, warning or info")
    return replace(settings, fail_on=_LEVELS[said.value])


def _require(settings: Settings, said: Said) -> Settings:
    if said.value not in DEMANDS:
        hint = did_you_mean(
            str(said.value), DEMANDS, "what a launch must meet stands in `[[tool.tilecheck.kernel]]`"
        )
        raise _wrong(said, f"one of {', '.join(DEMANDS)}", hint)
    return replace(settings, require=said.value)


def _budget(settings: Settings, said: Said) -> Settings:
    try:
        return replace(settings, budget=budget(str(said.value)))
    except ValueError as problem:
        raise _wrong(said, str(problem)) from None


def budget(text: str) -> int:
    """A number of steps of the solver: `2000k`, `2M` or digits alone.

    Raises:
        ValueError: it is none; says what it must be.
    """
    found = _BUDGET.fullmatch(text)
    steps = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < steps <= _MOST:
        raise ValueError("a number of steps such as 2000k or 2M, at most 4294M")
    return steps


def _format(settings: Settings, said: Said) -> Settings:
    if said.value not in FORMATS:
        raise _wrong(said, f"one of {', '.join(FORMATS)}", did_you_mean(str(said.value), FORMATS, "") or None)
    return replace(settings, format=said.value)


def _jobs(settings: Settings, said: Said) -> Settings:
    if said.value == "auto":
        return replace(settings, jobs=0)
    if type(said.value) is not int or said.value < 1:
        raise _wrong(said, 'a number of processes, or "auto"')
    return replace(settings, jobs=said.value)


def _cache_dir(settings: Settings, said: Said) -> Settings:
    return replace(settings, cache_dir=absolute((said.base / _text(said)).as_posix()))


def _kernel(settings: Settings, said: Said) -> Settings:
    return replace(settings, kernels=read_entries(said.value, _table(said), said.file))


KEYS: dict[str, Callable[[Settings, Said], Settings]] = {
    "required-version": _required_version,
    "include": _include,
    "exclude": _exclude,
    "extend-exclude": _extend_exclude,
    "select": _select,
    "ignore": _ignore,
    "levels": _levels,
    "per-file-ignores": _per_file_ignores,
    "fail-on": _fail_on,
    "require": _require,
    "budget": _budget,
    "format": _format,
    "jobs": _jobs,
    "cache-dir": _cache_dir,
    "kernel": _kernel,
}
