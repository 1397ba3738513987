"""The one door to cvc5. It is imported when the first question is asked, and only there: it is optional."""

from __future__ import annotations

from tilecheck.certificate.terms import CertificateError

_LIMIT = 10_000_000  # resource units of cvc5 for one question; most need a few thousand


def is_installed() -> bool:
    from importlib.util import find_spec  # lazy

    return find_spec("cvc5") is not None


def ask(query: str) -> str:
    """cvc5's answer to a query in SMT-LIB: "unsat", "sat" or "unknown". The limit counts steps, not time."""
    import cvc5  # lazy: an optional dependency

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit", str(_LIMIT))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, query, "certificate")
    answer = "unknown"
    try:
        while not (command := parser.nextCommand()).isNull():
            answer = str(command.invoke(solver, parser.getSymbolManager())).strip() or answer
    except RuntimeError as error:
        raise CertificateError(f"cvc5 does not read it: {str(error).splitlines()[0]}") from None
    return answer if answer in ("unsat", "sat") else "unknown"
