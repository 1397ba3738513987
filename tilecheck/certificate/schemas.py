"""The schemas of lemmas: the one place that says what an instance states, and why that is true.

An instance names a schema and gives it terms; what it states is built here, so a certificate cannot state
anything else. Every schema holds for all integers, whatever the terms are. `docs/soundness.md` lists them with
the prover's lemmas; a test tries each on all small integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilecheck.certificate.terms import CertificateError, Term, Terms

Of = Callable[..., Term]  # `Terms.of`


def statement(terms: Terms, schema: str, args: Sequence[Term]) -> Term:
    """What the instance of `schema` for `args` states.

    Raises:
        CertificateError: there is no such schema, or these are not arguments of it.
    """
    if schema not in SCHEMAS:
        raise CertificateError(f"`{schema}` is no schema of lemmas")
    build, count = SCHEMAS[schema]
    if len(args) != count or any(a.is_bool for a in args):
        raise CertificateError(f"an instance of `{schema}` is about {count} integers, and this one is not")
    return build(terms.of, terms.number(0), *args)


def sign(of: Of, zero: Term, d: Term, x: Term) -> Term:
    """The sign and size of d*x (L1).

    d, x > 0: multiply x >= 1 by d, and d >= 1 by x. d, x >= 0: multiply x >= 0 by d. d >= 0 and x < 0: multiply
    x <= -1 by d; and with d and x exchanged. A product with 0 is 0.
    """
    t = of("*", d, x)
    return of(
        "and",
        of("=>", of("and", of("<", zero, d), of("<", zero, x)), of("and", of("<=", d, t), of("<=", x, t))),
        of("=>", of("and", of("<=", zero, d), of("<=", zero, x)), of("<=", zero, t)),
        of("=>", of("and", of("<=", zero, d), of("<", x, zero)), of("<=", t, of("-", d))),
        of("=>", of("and", of("<=", zero, x), of("<", d, zero)), of("<=", t, of("-", x))),
        of("=>", of("or", of("=", d, zero), of("=", x, zero)), of("=", t, zero)),
    )


def order(of: Of, zero: Term, d: Term, x: Term, y: Term) -> Term:
    """Multiples by one d >= 0 are ordered as x and y are (L2; with x = 0 also L4, and what L6 adds to it).

    Over integers x < y is x + 1 <= y; multiplied by d >= 0 that is d*x + d <= d*y. Equal x and y have equal
    multiples.
    """
    dx, dy = of("*", d, x), of("*", d, y)
    return of(
        "=>",
        of("<=", zero, d),
        of(
            "and",
            of("=>", of("<", x, y), of("<=", of("+", dx, d), dy)),
            of("=>", of("<", y, x), of("<=", of("+", dy, d), dx)),
            of("=>", of("=", x, y), of("=", dx, dy)),
        ),
    )


def equal_factors(of: Of, zero: Term, a: Term, b: Term, x: Term) -> Term:
    """Equal factors give equal products (L3, L3m; with `order`, L5): a product is a function of its factors."""
    return of("=>", of("=", a, b), of("=", of("*", a, x), of("*", b, x)))


SCHEMAS: dict[str, tuple[Callable[..., Term], int]] = {
    "sign": (sign, 2),
    "order": (order, 3),
    "equal-factors": (equal_factors, 3),
}
