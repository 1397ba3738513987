"""`compile` and `run`: what happens to kernels after their verdict. Both import the modules they are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilecheck.cli.command import Verb, add_paths
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
    from tilecheck.jit.export_triton import Cubin
    from tilecheck.jit.records import Record
    from tilecheck.model import Report


def add(verb: Verb) -> None:
    build = verb("compile", compile_kernels, "compile verified kernels ahead of time; needs no GPU")
    add_paths(build)
    build.add_argument("--arch", required=True, metavar="ARCH", help="the GPU to compile for, such as sm_90")
    build.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to write to")
    build.add_argument(
        "--format", choices=("cubin", "tileir", "both"), default="both", metavar="FORMAT",
        help="cubin, tileir or both (default); Triton kernels have cubins alone",
    )  # fmt: skip
    build.add_argument(
        "--signature", action="append", default=[], metavar="KERNEL=TYPES",
        help="compile a Triton kernel for these types and constants, such as 'add=*fp32, *fp32, i32, 1024'",
    )  # fmt: skip
    start = verb("run", run, "run the examples of modules whose kernels are verified")
    add_paths(start)
    start.add_argument(
        "--backend", choices=("auto", "gpu", "reference"), default="auto", metavar="BACKEND",
        help="auto (default: the GPU if there is one), gpu, or reference (NumPy)",
    )  # fmt: skip


def compile_kernels(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Verify, then compile every verified kernel for each of its examples."""
    from tilecheck.jit import export_triton  # lazy: loads the guard
    from tilecheck.jit.cubin import MANIFEST, write_manifest  # lazy
    from tilecheck.jit.export import export_kernel  # lazy

    formats = ("cubin", "tileir") if arguments.format == "both" else (arguments.format,)
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {refusal(error)}") from None
    given = _signatures(arguments.signature)
    report, code = _verified(arguments, streams, engine)
    compiled: list[Compiled] = []
    in_triton: list[tuple[Record, tuple[Cubin, ...]]] = []
    skipped: list[Record] = []
    for record, examples in _kernels(report, streams, skipped):
        is_triton = record.language == "triton"
        done = [r for r, _ in in_triton] if is_triton else [c.record for c in compiled]
        if any(other.name == record.name for other in done):
            raise UsageError(
                f"two kernels are called `{record.name}`; the second is at {_place(record)}",
                "compile them into folders of their own: a compiled kernel is found by its name",
            )
        if not examples and not (is_triton and record.name in given):
            streams.out(f"no example   {_place(record)}  {record.name}\n")
            streams.log(_NO_EXAMPLE.format(name=record.name))
            code = ExitCode.FINDINGS if code is ExitCode.OK else code
            continue
        if is_triton and "cubin" not in formats:
            streams.out(f"skipped      {_place(record)}  {record.name}: Triton has no Tile IR\n")
            continue
        if is_triton:
            cubins = _compile_triton(record, examples, given.pop(record.name, []), arguments.arch, folder)
            in_triton.append((record, cubins))
            count = len(cubins)
        else:
            kernel = examples[0].kernel
            compiled.append(export_kernel(record, kernel, examples, arguments.arch, formats, folder))
            count = len(compiled[-1].variants)
        streams.out(f"compiled     {_place(record)}  {record.name}: {count} variant{'s' * (count != 1)}\n")
    if skipped and not compiled and not in_triton:
        raise UsageError("nothing was compiled: Triton is not installed", _INSTALL)
    unknown = given.keys() - {record.name for record in skipped}
    if unknown:
        raise UsageError(f"`--signature` names `{min(unknown)}`, which is no verified Triton kernel here")
    if "cubin" in formats and (compiled or not in_triton):
        write_manifest(folder, arguments.arch, compiled)
        streams.out(f"wrote {folder / MANIFEST}: {len(compiled)} kernels for {arguments.arch}\n")
    if in_triton:
        export_triton.write_manifest(folder, arguments.arch, in_triton)
        streams.out(f"wrote {folder / export_triton.MANIFEST}: {len(in_triton)} kernels for {arguments.arch}\n")
    return code


def _signatures(given: list[str]) -> dict[str, list[str]]:
    """The signatures of the command line by kernel."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, types = text.partition("=")
        if not equals:
            raise UsageError(f"`--signature {text}` names no kernel", "write KERNEL=TYPES")
        found.setdefault(name.strip(), []).append(types)
    return found


def _compile_triton(
    record: Record, examples: list[Example], given: list[str], arch: str, folder: Path
) -> tuple[Cubin, ...]:
    """Compile a kernel for the signatures of the command line, else for those of its examples."""
    from tilecheck.jit.export_triton import export_kernel, read_signature, signature_of  # lazy
    from tilecheck.jit.modules import load_module, triton_kernels  # lazy

    if not given:
        signatures = [signature_of(record, example) for example in examples]
        return export_kernel(record, examples[0].kernel, signatures, arch, folder)
    for kernel in triton_kernels(load_module(record.file)):
        if _line(kernel, record.file) == record.line:
            _check_names(kernel, record)
            return export_kernel(record, kernel, [read_signature(record, t) for t in given], arch, folder)
    raise UsageError(f"`{record.name}` of {record.file} is no name of its module", "give it an example")


_INSTALL = "`pip install 'tilecheck[triton]'`"
_NO_EXAMPLE = (
    "tilecheck: no example says with which types `{name}` is launched\n"
    "  hint: define `examples()` in its module, yielding `tilecheck.Example`s"
)


def run(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Verify, then run every example of every verified kernel and compare with what it expects."""
    from tilecheck.jit.device import missing_gpu  # lazy: loads NumPy
    from tilecheck.jit.run import run_example  # lazy
    from tilecheck.reference import ReplayError  # lazy

    missing = None if arguments.backend == "reference" else missing_gpu()
    if arguments.backend == "gpu" and missing:
        raise UsageError(f"there is no GPU to run on: {missing}", "`--backend reference` runs in NumPy")
    on_gpu = arguments.backend != "reference" and missing is None
    report, code = _verified(arguments, streams, engine)
    ran = failed = 0
    skipped: list[Record] = []
    for record, examples in _kernels(report, streams, skipped):
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
    if not ran and skipped and code is ExitCode.OK:
        raise UsageError("no example ran: Triton is not installed", _INSTALL)
    if not ran and code is ExitCode.OK:
        raise UsageError("no kernel has an example", "define `examples()`, yielding `tilecheck.Example`s")
    return code


def _verified(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> tuple[Report, ExitCode]:
    """Verify; print what was found, and every kernel that goes no further."""
    from tilecheck.report.emitters.full import render_findings  # lazy
    from tilecheck.report.style import plain  # lazy

    options = Options(jobs=available_cores())
    report = engine.verify(arguments.paths, options)
    if report.diagnostics:
        streams.log(plain(render_findings(report)).rstrip())
    log_internal_errors(report, [arguments.verb, *arguments.paths], streams)
    return report, exit_code_of(report, options)


def _kernels(report: Report, streams: Streams, skipped: list[Record]) -> Iterator[tuple[Record, list[Example]]]:
    """Every verified kernel with the examples of its module; the others are named on the way.

    Those that cannot be imported here, for want of Triton, are added to `skipped`.
    """
    from tilecheck.jit.export_triton import missing  # lazy
    from tilecheck.jit.records import records_of  # lazy

    by_file: dict[str, list[Record]] = {}
    for record in records_of(report):
        if record.is_accepted:
            by_file.setdefault(record.file, []).append(record)
        else:
            because = record.verdict if record.reason is None else f"{record.verdict} ({record.reason})"
            streams.out(f"not verified {_place(record)}  {record.name}: {because}\n")
    for file, found in by_file.items():
        absent = missing() if any(record.language == "triton" for record in found) else None
        if absent:
            for record in found:
                streams.out(f"skipped      {_place(record)}  {record.name}: {absent}\n")
            skipped += found
            continue
        examples = _examples(file)
        for record in found:
            own = [example for line, example in examples if line == record.line]
            for example in own:
                _check_names(example.kernel, record)
            yield record, own


def _check_names(kernel: Any, record: Record) -> None:
    """The import may have found other helpers than the proof did, or have assigned to what it read."""
    from tilecheck.jit.jitted import check_annotations, layers_of  # lazy
    from tilecheck.jit.modules import kernel_function  # lazy
    from tilecheck.jit.verdicts import check_helpers, check_text  # lazy

    function = kernel_function(kernel)
    try:
        check_helpers(function, record, Path(record.file).parent)
        if record.language == "triton":
            layers = layers_of(kernel)
            check_text(layers.jitted, function)
            check_annotations(layers, record)
    except LaunchRefused as error:
        raise UsageError(str(error)) from None


def _examples(file: str) -> list[tuple[int, Example]]:
    """The examples of a module, each with the line of its kernel's `def`."""
    from tilecheck.jit.modules import examples_of, load_module  # lazy

    found = [(_line(example.kernel, file), example) for example in examples_of(load_module(file), file)]
    return [(line, example) for line, example in found if line is not None]


def _line(kernel: Any, file: str) -> int | None:
    """The line of a kernel's `def` in a file, or None if it is of another file."""
    from tilecheck.jit.modules import kernel_function  # lazy
    from tilecheck.jit.verdicts import line_of  # lazy

    function = kernel_function(kernel)
    if Path(function.__code__.co_filename).resolve() != Path(file).resolve():
        return None
    try:
        return line_of(function, Path(file).read_bytes())
    except LaunchRefused as error:
        raise UsageError(str(error)) from None


def _place(record: Record) -> str:
    return f"{record.file}:{record.line}"
