"""`tilecheck test`: runs the examples of rules and annotated fixtures, and compares exactly both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb
from tilecheck.cli.streams import Streams
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UsageError
from tilecheck.exit_codes import ExitCode

if TYPE_CHECKING:
    import argparse

    from tilecheck.cli.engine import Engine
    from tilecheck.registry import RuleFile


def add(verb: Verb) -> None:
    test = verb("test", run_tests, "run the examples of rules, and annotated fixtures")
    test.add_argument(
        "targets", nargs="*", metavar="RULE|PATH", help="rules, files or directories (default: all rules)"
    )


@dataclass(frozen=True, slots=True)
class _Result:
    """One thing that was tested, and what was wrong with it."""

    name: str
    problems: tuple[str, ...]


def run_tests(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Test the rules and files that are named; without a name, every rule."""
    rules, files = _targets(arguments.targets)
    tested = failed = 0
    for result in (*_rules(rules), *_fixtures(files)):
        tested += 1
        failed += bool(result.problems)
        for problem in result.problems:
            streams.out(f"{result.name}: {problem}\n")
    if not tested:
        raise UsageError("nothing to test", "name rules, or files whose kernels carry `# verdict:` comments")
    streams.out(f"{tested - failed} passed, {failed} failed\n")
    return ExitCode.FINDINGS if failed else ExitCode.OK


def _targets(words: Sequence[str]) -> tuple[list[RuleFile], list[Path]]:
    from tilecheck.registry import find_rule, rule_files  # lazy

    rules: list[RuleFile] = []
    files: list[Path] = []
    for word in words:
        rule = find_rule(word)
        path = Path(word)
        if rule is not None:
            rules.append(rule)
        elif path.is_dir():
            files.extend(sorted(path.rglob("*.py")))
        elif path.is_file():
            files.append(path)
        else:
            raise UsageError(f"`{word}` is neither a rule nor a path", "`tilecheck rules` lists the rules")
    return (rules if words else list(rule_files())), files


def _rules(rules: Sequence[RuleFile]) -> Iterator[_Result]:
    from tempfile import TemporaryDirectory  # lazy

    from tilecheck.registry import rule_page  # lazy
    from tilecheck.testing.examples import check_example, page_examples

    for rule in rules:
        examples = page_examples(rule.code, rule_page(rule))
        with TemporaryDirectory(prefix="tilecheck-") as folder:
            for example in examples:
                name = f"{rule.code}, {example.section.lower()} {example.number}"
                yield _Result(name, tuple(check_example(example, Path(folder))))
        if not examples:
            yield _Result(rule.code, ("its page has no examples",))


def _fixtures(files: Sequence[Path]) -> Iterator[_Result]:
    for path in files:
        problems = _fixture(path)
        if problems is not None:
            yield _Result(path.as_posix(), problems)


def _fixture(path: Path) -> tuple[str, ...] | None:
    """What is wrong with a file; None for one without annotations."""
    from tilecheck.testing import AnnotationError, check_fixture, fixture_kernels  # lazy

    try:
        return tuple(check_fixture(path)) if fixture_kernels(path) else None
    except (AnnotationError, SourceError, SyntaxError) as error:
        return (str(error),)
