"""What a finding is, whatever is edited elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilecheck.history.fingerprint import Identity, identities, without_layout
from tilecheck.model import Diagnostic, Related, Severity, Site, Span

CODE = """def k(x, out):
    ct.store(out, index=(0,), tile=t)
    ct.store(out, index=(0,), tile=t)
    ct.load(x)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ct.store(out, index=(i,), tile=t)", "ct.store(out,index=(i,),tile=t)"),
        ("ct.store(\n    out,\n    index=(i,),  # why\n    tile=t,\n)", "ct.store(out,index=(i,),tile=t)"),
        ("for i in x:\n    a()\n    b()", "for i in x:a()b()"),
        ("a if _b else 0x1", "a if _b else 0x1"),
        ("f'{a}  b'", "f'{a}  b'"),
        ("(i,)", "(i,)"),
        ("#  tilecheck:  ignore[TC201]", "# tilecheck: ignore[TC201]"),
        ("'no  code", "'no code"),
        ("", ""),
    ],
)
def test_code_without_layout(text: str, expected: str) -> None:
    assert without_layout(text) == expected


def _finding(
    text: str, file: str = "k.py", code: str = "TC201", source: str = CODE, nth: int = 0
) -> Diagnostic:
    start = -1
    for _ in range(nth + 1):
        start = source.index(text, start + 1)
    site = Site(file, Span(start, start + len(text)))
    return Diagnostic(code, "x", Severity.ERROR, "a message", site, "k")


STORE = "ct.store(out, index=(0,), tile=t)"


def test_equal_code_is_told_apart_by_its_order_alone() -> None:
    first, second, load = _finding(STORE), _finding(STORE, nth=1), _finding("ct.load(x)")
    found = identities([second, load, first], {"k.py": CODE.encode()})
    assert [identity.occurrence for identity in found] == [1, 0, 0]
    assert found[0].operation == found[2].operation == "ct.store(out,index=(0,),tile=t)"
    assert len({identity.digest() for identity in found}) == 3


def test_lines_above_and_layout_change_nothing() -> None:
    moved = "# more\n\n" + CODE.replace(STORE, "ct.store(\n        out, index=(0,),\n        tile=t,\n    )")
    start = moved.index("ct.store")
    site = Site("k.py", Span(start, moved.index("    )", start) + 5))
    before = identities([_finding(STORE)], {"k.py": CODE.encode()})
    after = identities([replace(_finding(STORE), site=site)], {"k.py": moved.encode()})
    assert before == after


def test_rule_path_kernel_and_second_place_count() -> None:
    one = _finding(STORE)
    others = [
        replace(one, code="TC202"),
        replace(one, kernel="other"),
        replace(one, kernel=None),
        replace(one, site=Site("other.py", one.site.span)),
        replace(one, related=(Related(_finding("ct.load(x)").site, "and here"),)),
    ]
    found = identities([one, *others], {"k.py": CODE.encode(), "other.py": CODE.encode()})
    assert len({identity.digest() for identity in found}) == 6
    assert found[-1].operation == "ct.store(out,index=(0,),tile=t) with ct.load(x)"


def test_conditions_of_one_launch_are_told_apart_by_what_they_say() -> None:
    one, other = (replace(_finding(STORE), code="TC402", message=text) for text in ("breaks a", "breaks b"))
    found = identities([one, other], {"k.py": CODE.encode()})
    assert [(identity.claim, identity.occurrence) for identity in found] == [("breaks a", 0), ("breaks b", 0)]
    assert identities([other], {"k.py": CODE.encode()}) == (found[1],)  # the first was put right
    assert identities([replace(one, code="TC201")], {})[0].claim == ""


def test_parts_do_not_run_into_each_other() -> None:
    assert Identity("TC1", "a", "b", "", "", 0).digest() != Identity("TC1", "ab", "", "", "", 0).digest()


def test_the_path_is_written_as_asked() -> None:
    (found,) = identities([_finding(STORE)], {"k.py": CODE.encode()}, path=lambda file: f"sub/{file}")
    assert found.path == "sub/k.py"
    assert identities([_finding(STORE)], {})[0].operation == ""
