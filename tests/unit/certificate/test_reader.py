"""The reader takes certificates and nothing else; what it refuses it explains."""

from __future__ import annotations

import pytest

from tilecheck.certificate.reader import END, PRELUDE, parsed
from tilecheck.certificate.terms import CertificateError

BODY = """; a comment
(declare-const |x of 1| Int)
(declare-const flag Bool)
(declare-fun |slots[]| (Int) Int)
(define-fun t () Int (+ |x of 1| (- 2)))
(assert (or flag (< (|slots[]| t) (floor-mod t 3))))
(set-info :lemma (sign t |x of 1|))
"""


def test_reads_a_certificate(evaluate) -> None:
    found = parsed(PRELUDE + BODY + END)
    assert len(found.assertions) == len(found.lemmas) == 1
    for x in range(-3, 4):
        known = {"|x of 1|": x, "flag": False}
        assert evaluate(found.assertions[0], known) == (x - 2 < (x - 2) % 3)
        assert evaluate(found.lemmas[0], known)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("(assert (< y 0))", "never declares `y`"),
        ("(assert (+ t 1))", "asserts an integer"),
        ("(assert (< t flag))", "wrong sort in `<`"),
        ("(assert (not t))", "wrong sort in `not`"),
        ("(assert (< t))", "`<` with 1 arguments"),
        ("(assert (|slots[]| t))", "asserts an integer"),
        ("(assert (< (|slots[]| t t) 0))", "no function of 2 arguments"),
        ("(assert (< (|slots[]| flag) 0))", "a condition as an argument"),
        ("(assert (forall ((y Int)) (< y 0)))", "never declares `y`"),
        ("(assert ())", "without an operator"),
        ("(assert ((t) t))", "without an operator"),
        ("(assert)", "a command that certificates do not have"),
        ("(check-sat-assuming (flag))", "a command that certificates do not have"),
        ("(set-info :status unsat)", "a command that certificates do not have"),
        ("(define-fun u ((a Int)) Int a)", "a command that certificates do not have"),
        ("(define-fun u () Bool t)", "defined as what it is not"),
        ("(define-fun t () Int 3)", "a second meaning to `t`"),
        ("(declare-const floor-div Int)", "a second meaning to `floor-div`"),
        ("(declare-fun minimum (Int Int) Int)", "a second meaning to `minimum`"),
        ("(declare-const true Bool)", "a second meaning to `true`"),
        ("(declare-const 3 Int)", "a second meaning to `3`"),
        ("(set-info :lemma (sign t))", "about 2 integers"),
        ("(set-info :lemma (sign t flag))", "about 2 integers"),
        ("(set-info :lemma (holds t t))", "no schema"),
        ("(set-info :lemma (sign t y))", "never declares `y`"),
        ("(assert flag", "parentheses stay open"),
        ("assert", "outside of parentheses"),
        (")", "outside of parentheses"),
        ('(assert "flag)', "cannot be read"),
        ("(assert |flag)", "cannot be read"),
        ("; a line ends here\r(assert false)", "characters that certificates do not have"),
        ("; \u2028(assert false)", "characters that certificates do not have"),
        (f"(assert (< {'9' * 5000} t))", "never declares"),
        ("(set-logic QF_LIA)", "a command that certificates do not have"),
    ],
)
def test_anything_else_is_refused(added: str, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        parsed(PRELUDE + BODY + added + "\n" + END)


def test_the_operators_mean_what_they_mean() -> None:
    """A file cannot define them otherwise."""
    other = PRELUDE.replace("(ite (<= a b) a b)", "(ite (<= a b) b a)")
    with pytest.raises(CertificateError, match="does not begin with"):
        parsed(other + BODY + END)


@pytest.mark.parametrize("kept", [0, 40, len(PRELUDE), len(PRELUDE) + 40, len(PRELUDE + BODY), -1])
def test_a_truncated_file_is_refused(kept: int) -> None:
    with pytest.raises(CertificateError, match=r"does not begin|truncated"):
        parsed((PRELUDE + BODY + END)[:kept])


def test_every_text_without_a_character_is_read_or_refused() -> None:
    """Never a traceback."""
    text = PRELUDE + BODY + END
    refused = sum(is_refused(text[:at] + text[at + 1 :]) for at in range(len(text)))
    assert refused > len(PRELUDE + END)


def is_refused(text: str) -> bool:
    try:
        parsed(text)
    except CertificateError:
        return True
    return False


def test_nothing_asserted_is_nothing_proved() -> None:
    with pytest.raises(CertificateError, match="asserts nothing"):
        parsed(PRELUDE + END)


def test_deep_terms_are_no_trouble() -> None:
    deep = "(not " * 20_000 + "flag" + ")" * 20_000
    assert len(parsed(PRELUDE + BODY + f"(assert {deep})\n" + END).assertions) == 2
