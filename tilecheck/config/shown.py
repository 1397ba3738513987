"""The configuration as people ask for it: each value, and who said it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tilecheck.config.files import Configs
from tilecheck.config.schema import KEYS
from tilecheck.config.settings import DEFAULT, EXCLUDED, Settings
from tilecheck.dataclass import dataclass

# What these say counts for a whole run, and is read for the working directory.
OF_THE_RUN = ("fail-on", "require", "format", "jobs", "cache-dir")
# Text that says what counts where nobody says anything.
_DEFAULTS: dict[str, Any] = {
    "exclude": list(EXCLUDED),
    "select": ["TC"],
    "fail-on": "error",
    "require": "conditional",
    "budget": "2000k",
    "jobs": "auto",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A key, what it is, and where that comes from. `counts` is false for what a file says in vain."""

    key: str
    value: Any
    origin: str
    counts: bool = True


def shown_for(path: str, configs: Configs) -> list[Shown]:
    """Every key that has a value for a path, in the order of the documentation."""
    own, run = configs.of(path), configs.of_run()
    found: list[Shown] = []
    for key in KEYS:
        said = list(_said(run if key in OF_THE_RUN else own, key))
        if not said and key in _DEFAULTS:
            said = [Shown(key, _DEFAULTS[key], DEFAULT)]
        found.extend(said)
        if key in OF_THE_RUN and own.file != run.file:
            found.extend(Shown(s.key, s.value, s.origin, counts=False) for s in _said(own, key))
    return found


def _said(settings: Settings, key: str) -> Iterator[Shown]:
    for said in settings.said:
        if said.key == key:
            yield Shown(key, said.value, said.origin)


def toml_text(value: Any) -> str:
    """A value on one line, as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_text(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _key(name: str) -> str:
    is_bare = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
