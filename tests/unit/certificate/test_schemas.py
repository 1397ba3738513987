"""Every schema of lemmas holds for all small integers, and none says less than it could."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path

import pytest

from tilecheck.certificate import schemas
from tilecheck.certificate.schemas import SCHEMAS, statement
from tilecheck.certificate.terms import CertificateError, Terms

ROOT = Path(__file__).parents[3]
SMALL = range(-5, 6)


def false_for(schema: str, evaluate) -> tuple[int, ...] | None:
    """Small integers for which an instance of the schema is false."""
    names = "abcdef"[: SCHEMAS[schema][1]]
    terms = Terms()
    stated = statement(terms, schema, [terms.constant(name, is_bool=False) for name in names])
    for values in itertools.product(SMALL, repeat=len(names)):
        if not evaluate(stated, dict(zip(names, values, strict=True))):
            return values
    return None


@pytest.mark.parametrize("schema", SCHEMAS)
def test_holds_for_all_small_integers(schema: str, evaluate) -> None:
    assert false_for(schema, evaluate) is None


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ("sign", 'of("<=", zero, t)', 'of("<", zero, t)'),
        ("sign", 'of("<=", d, t)', 'of("<", d, t)'),
        ("sign", 'of("and", of("<", zero, d), of("<", zero, x))', 'of("<", zero, d)'),
        ("sign", 'of("<=", t, of("-", d))', 'of("<", t, of("-", d))'),
        ("sign", 'of("<=", t, of("-", x))', 'of("<", t, of("-", x))'),
        ("sign", 'of("=", t, zero)', 'of("=", t, d)'),
        ("order", 'of("<=", zero, d)', 'of("<=", d, zero)'),
        ("order", 'of("<=", of("+", dx, d), dy)', 'of("<", of("+", dx, d), dy)'),
        ("order", 'of("<=", of("+", dy, d), dx)', 'of("<", of("+", dy, d), dx)'),
        ("order", 'of("=", dx, dy)', 'of("=", dx, d)'),
        ("equal-factors", 'of("=", a, b)', 'of("<=", a, b)'),
        ("equal-factors", 'of("*", b, x)', 'of("*", b, b)'),
    ],
)
def test_a_wrong_schema_is_noticed(schema: str, right: str, wrong: str, evaluate, monkeypatch) -> None:
    """The test above is not vacuous: each schema, made slightly too strong, is false somewhere."""
    build, count = SCHEMAS[schema]
    source = inspect.getsource(build)
    assert right in source
    scope = dict(vars(schemas))
    exec(f"from __future__ import annotations\n{source.replace(right, wrong, 1)}", scope)
    monkeypatch.setitem(SCHEMAS, schema, (scope[build.__name__], count))
    assert false_for(schema, evaluate) is not None


@pytest.mark.parametrize(
    ("schema", "count"), [("magic", 2), ("sign", 1), ("sign", 3), ("order", 2), ("equal-factors", 0)]
)
def test_what_is_no_instance_is_rejected(schema: str, count: int) -> None:
    terms = Terms()
    with pytest.raises(CertificateError, match=f"`{schema}`"):
        statement(terms, schema, [terms.number(n) for n in range(count)])


def test_an_instance_is_about_integers() -> None:
    terms = Terms()
    with pytest.raises(CertificateError, match="2 integers"):
        statement(terms, "sign", [terms.number(1), terms.truth(True)])


def test_the_documentation_lists_the_schemas() -> None:
    text = (ROOT / "docs/soundness.md").read_text()
    section = text[text.index("## Certificates") :]
    section = section[: section.index("\n## ", 4)]
    assert set(re.findall(r"^\| `([a-z-]+)`", section, flags=re.MULTILINE)) == set(SCHEMAS)
