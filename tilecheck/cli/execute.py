"""`compile` and `run`: what happens to kernels after their verdict. Both import the modules they are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilecheck.cli.crash import log_internal_errors
from tilecheck.cli.streams import Streams
from tilecheck.errors import LaunchRefused, UsageError, refusal
from tilecheck.exit_codes import ExitCode, exit_code_of
from tilecheck.options import Options
from tilecheck.parallel import available_cores

if TYPE_CHECKING:
    import argparse

    from tilecheck.cli.engine import Engine
    from tilecheck.example import Example
    from tilecheck.jit.cubin import Compiled
    from tilecheck.jit.records import Record
    from tilecheck.model import Report


def compile_kernels(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Verify, then compile every verified kernel for each of its examples."""
    from tilecheck.jit.cubin import MANIFEST, write_manifest  # lazy: loads the guard
    from tilecheck.jit.export import export_kernel  # lazy

    formats = ("cubin", "tileir") if arguments.format == "both" else (arguments.format,)
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {refusal(error)}") from None
    report, code = _verified(arguments, streams, engine)
    compiled: list[Compiled] = []
    for record, examples in _kernels(report, streams):
        if any(other.record.name == record.name for other in compiled):
            raise UsageError(
                f"two kernels are called `{record.name}`; the second is at {_place(record)}",
                "compile them into folders of their own: a compiled kernel is found by its name",
            )
        if not examples:
            streams.out(f"no example   {_place(record)}  {record.name}\n")
            streams.log(_NO_EXAMPLE.format(name=record.name))
            code = ExitCode.FINDINGS if code is ExitCode.OK else code
            continue
        kernel = examples[0].kernel
        compiled.append(export_kernel(record, kernel, examples, arguments.arch, formats, folder))
        count = len(compiled[-1].variants)
        streams.out(f"compiled     {_place(record)}  {record.name}: {count} variant{'s' * (count != 1)}\n")
    if "cubin" in formats:
        write_manifest(folder, arguments.arch, compiled)
        streams.out(f"wrote {folder / MANIFEST}: {len(compiled)} kernels for {arguments.arch}\n")
    return code


_NO_EXAMPLE = (
    "tilecheck: no example says with which types `{name}` is launched\n"
    "  hint: define `examples()` in its module, yielding `tilecheck.Example`s"
)


def run(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Verify, then run every example of every verified kernel and compare with what it expects."""
    from tilecheck.jit.device import missing_gpu  # lazy: loads NumPy
    from tilecheck.jit.reference import ReplayError  # lazy
    from tilecheck.jit.run import run_example  # lazy

    missing = None if arguments.backend == "reference" else missing_gpu()
    if arguments.backend == "gpu" and missing:
        raise UsageError(f"there is no GPU to run on: {missing}", "`--backend reference` runs in NumPy")
    on_gpu = arguments.backend != "reference" and missing is None
    report, code = _verified(arguments, streams, engine)
    ran = failed = 0
    for record, examples in _kernels(report, streams):
        if not examples:
            streams.log(_NO_EXAMPLE.format(name=record.name))
        for example in examples:
            ran += 1
            try:
                result = run_example(record, example, on_gpu=on_gpu)
                problem = result.problem
            except (LaunchRefused, ReplayError) as error:
                problem = str(error)
            failed += bool(problem)
            grid = f"({', '.join(map(str, example.grid))}{',' * (len(example.grid) == 1)})"
            told = problem or f"within {result.error:.2g}, {result.seconds:.2f} s"
            word = "differs" if problem else "agrees"
            streams.out(f"{word:<11}  {_place(record)}  {record.name}, grid {grid}: {told}\n")
    where = "the GPU" if on_gpu else "the reference backend (NumPy)"
    why = f": {missing}" if missing else ""
    streams.out(f"ran {ran} example{'s' * (ran != 1)} on {where}{why}\n")
    if failed and code is not ExitCode.INTERNAL:
        return ExitCode.FINDINGS
    if not ran and code is ExitCode.OK:
        raise UsageError("no kernel has an example", "define `examples()`, yielding `tilecheck.Example`s")
    return code


def _verified(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> tuple[Report, ExitCode]:
    """Verify; print what was found, and every kernel that goes no further."""
    from tilecheck.report.full import render_findings  # lazy
    from tilecheck.report.style import plain  # lazy

    options = Options(jobs=available_cores())
    report = engine.verify(arguments.paths, options)
    if report.diagnostics:
        streams.log(plain(render_findings(report)).rstrip())
    log_internal_errors(report, [arguments.verb, *arguments.paths], streams)
    return report, exit_code_of(report, options)


def _kernels(report: Report, streams: Streams) -> Iterator[tuple[Record, list[Example]]]:
    """Every verified kernel with the examples of its module; the others are named on the way."""
    from tilecheck.jit.records import records_of  # lazy

    by_file: dict[str, list[Record]] = {}
    for record in records_of(report):
        if record.is_accepted:
            by_file.setdefault(record.file, []).append(record)
        else:
            because = record.verdict if record.reason is None else f"{record.verdict} ({record.reason})"
            streams.out(f"not verified {_place(record)}  {record.name}: {because}\n")
    for file, found in by_file.items():
        examples = _examples(file)
        for record in found:
            own = [example for line, example in examples if line == record.line]
            for example in own:
                _check_names(example, record)
            yield record, own


def _check_names(example: Example, record: Record) -> None:
    """The import may have found other helpers than the proof did, or have assigned to what it read."""
    from tilecheck.jit.modules import kernel_function  # lazy
    from tilecheck.jit.verdicts import check_helpers  # lazy

    try:
        check_helpers(kernel_function(example.kernel), record, Path(record.file).parent)
    except LaunchRefused as error:
        raise UsageError(str(error)) from None


def _examples(file: str) -> list[tuple[int, Example]]:
    """The examples of a module, each with the line of its kernel's `def`."""
    from tilecheck.jit.modules import examples_of, kernel_function, load_module  # lazy
    from tilecheck.jit.verdicts import line_of  # lazy

    data = Path(file).read_bytes()
    found: list[tuple[int, Any]] = []
    for example in examples_of(load_module(file), file):
        function = kernel_function(example.kernel)
        if Path(function.__code__.co_filename).resolve() == Path(file).resolve():
            try:
                found.append((line_of(function, data), example))
            except LaunchRefused as error:
                raise UsageError(str(error)) from None
    return found


def _place(record: Record) -> str:
    return f"{record.file}:{record.line}"
