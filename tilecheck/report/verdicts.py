"""The verdict of every kernel, and the summary line. Printed also when all is well: silence is no proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilecheck.demand import has_decided_launches, has_unread_launches, passes, rests_on_promises
from tilecheck.model import (
    HostReport,
    KernelReport,
    LaunchOrder,
    LaunchReport,
    Premise,
    Report,
    Touched,
    Verdict,
)
from tilecheck.report.places import Places, hosts_in_order, kernels_in_order
from tilecheck.report.run import Run
from tilecheck.report.style import Line, Piece, line
from tilecheck.report.versions import versions


def render_end(run: Run) -> Iterator[Line]:
    """What follows the findings: the verdicts if they are asked for, and the summary; nothing if quiet."""
    if run.quiet:
        return
    if run.lists_verdicts and (run.report.kernels or run.report.hosts):
        yield from render_verdicts(run.report)
        yield ()
    yield from render_summary(run.report)


def render_verdicts(report: Report) -> Iterator[Line]:
    """One line for each kernel, and below it what the verdict rests on; then the host functions."""
    places = Places(report.sources)
    listed: list[KernelReport | HostReport] = [*kernels_in_order(report.kernels), *hosts_in_order(report.hosts)]
    where = [f"{judged.site.file}:{places.of(judged.site).line}" for judged in listed]
    width = max((len(text) for text in where), default=0)
    for judged, place in zip(listed, where, strict=True):
        word = judged.status if isinstance(judged, HostReport) else judged.verdict.value
        yield line((f"{word:<11}", _STYLES.get(word, word)), f"  {place:<{width}}  ", (judged.name, "strong"))
        why = _host_grounds(judged, places) if isinstance(judged, HostReport) else grounds(judged, places)
        for text in why:
            yield line(" " * 15, text)


# A host function is ordered as a kernel is proved, guarded as one passes on conditions that are checked when it
# is launched, and unread as a kernel is unknown.
_STYLES = {
    "ordered": Verdict.PROVED.value,
    "guarded": Verdict.CONDITIONAL.value,
    "unread": Verdict.UNKNOWN.value,
}


def _host_grounds(host: HostReport, places: Places) -> Iterator[str]:
    if host.reason:
        place = None if host.reason_site is None else places.of(host.reason_site)
        where = (
            "" if place is None else f"line {place.line}: " if place.file == host.site.file else f"{place}: "
        )
        yield f"because {where}{host.reason}"
    if host.findings:
        yield f"it breaks {', '.join(host.findings)}"


def grounds(kernel: KernelReport, places: Places) -> Iterator[str]:
    """What a verdict rests on, or why there is none."""
    if kernel.verdict is Verdict.UNKNOWN:
        yield f"because {kernel.reason or 'internal'}"
    if kernel.verdict in (Verdict.CONDITIONAL, Verdict.TRUSTED):
        yield from (f"if {condition}" for condition in kernel.conditions)
        yield from map(given, kernel.premises)
    if kernel.launch_order is not None:
        yield ordered(kernel.launch_order)
    # One call may be several launches, by the choices before it.
    yield from dict.fromkeys(launch_line(la, kernel, places) for la in kernel.launches if _is_told(la, kernel))
    for block in kernel.trusted:
        yield f"trusting line {places.of(block.site).line}: {block.reason}"


def given(premise: Premise) -> str:
    """A contract that a verdict rests on, on one line."""
    reason = f" -- {premise.reason}" if premise.reason else ""
    return f"given: {premise.text}{reason} ({premise.origin}, {premise.status})"


def ordered(order: LaunchOrder) -> str:
    """What a kernel touches before and after it waits for the launches before its own, on one line."""
    wait = (
        "its wait for earlier launches" if order.always else "a wait for earlier launches that it may not make"
    )
    needs = f"with {' and '.join(f'`{name}`' for name in order.needs)}, " if order.needs else ""
    return f"{needs}before {wait}: {_listed(order.before)}; after it: {_listed(order.after)}"


def _listed(touched: Touched) -> str:
    parts = (("loads", touched.reads), ("stores", touched.writes))
    return (
        ", ".join(f"{verb} {' and '.join(f'`{n}`' for n in names)}" for verb, names in parts if names)
        or "nothing"
    )


def _is_told(launch: LaunchReport, kernel: KernelReport) -> bool:
    """What is not read is never passed over. Where a finding or the verdict speaks of what fails, the rest is
    left out."""
    if not launch.is_read:
        return True
    if kernel.verdict in (Verdict.CONDITIONAL, Verdict.TRUSTED):
        return bool(launch.conditions)
    return kernel.verdict is not Verdict.VIOLATED and any(c.status != "holds" for c in launch.conditions)


def launch_line(launch: LaunchReport, kernel: KernelReport, places: Places) -> str:
    """One launch that can be seen: how many requirements hold, and who has to meet the others."""
    place = places.of(launch.site)
    where = f"line {place.line}" if place.file == kernel.site.file else f"{place.file}:{place.line}"
    return f"launch at {where}: {'; '.join(_statuses(launch))}"


def _statuses(launch: LaunchReport) -> Iterator[str]:
    if launch.is_unread:
        yield f"unread: {launch.problem or 'its text is not understood'}"
        return
    if not launch.is_read:
        yield "guarded: tilecheck.host checks it when it happens"
        return
    found: dict[str, list[str]] = {}
    for judged in launch.conditions:
        found.setdefault(judged.status, []).append(judged.text)
    held = len(found.pop("holds", ()))
    total = len(launch.conditions)
    whole = "the requirement holds" if total == 1 else f"all {total} requirements hold"
    yield f"{held} of {total} requirements hold" if held < total else whole
    for status, texts in found.items():
        words = f"{_host(launch)} relies on its caller for" if status == "caller" else status
        yield f"{words}: {', '.join(texts)}"


def _host(launch: LaunchReport) -> str:
    is_named = launch.function and not launch.function.startswith("<")
    return f"`{launch.function}`" if is_named else "the module"


def render_summary(report: Report) -> Iterator[Line]:
    """The counts of the run in one line; those that are zero are left out."""
    kernels = len(report.kernels)
    counts: list[Piece] = []
    for verdict in Verdict:
        count = report.count(verdict)
        if count:
            counts += [Piece(", " if counts else ""), Piece(f"{count} {verdict.value}", verdict.value)]
    obligations = sum(len(kernel.obligations) for kernel in report.kernels)
    suppressed = sum(1 for diagnostic in report.diagnostics if diagnostic.suppressed)
    tool = versions()
    rest = [*_passes(report), *_hosts(report), _count(report.files, "file")]
    rest += [_count(obligations, "obligation")] if kernels else []
    cached = sum(1 for kernel in report.kernels if kernel.cached)
    rest += [f"{cached} cached"] if cached else []
    rest += [f"{len(report.unreadable)} not read"] if report.unreadable else []
    rest += [_suppressed(suppressed, report.baselined)] if suppressed else []
    unchanged = f"{len(report.unchanged)} unchanged since {report.since}, not looked at"
    rest += [unchanged] if report.unchanged else []
    rest += [f"{report.time_s:.2f} s", f"tilecheck {tool['version']}, z3 {tool['z3']}"]
    head = Piece(_count(kernels, "kernel") + (": " if counts else ""), "strong")
    yield (head, *counts, Piece("".join(f" \N{MIDDLE DOT} {part}" for part in rest), "faint"))


def _passes(report: Report) -> Iterator[str]:
    """How many of the kernels that pass do so with every launch decided, with unread ones, and on promises."""
    passing = [kernel for kernel in report.kernels if passes(kernel)]
    for is_so, how in PASSES.values():
        number = sum(map(is_so, passing))
        if number:
            yield f"{number} {'passes' if number == 1 else 'pass'} {how}"


_HOST_STATUSES = ("ordered", "guarded", "violated", "unread")


def _hosts(report: Report) -> Iterator[str]:
    """How many host functions are ordered, guarded, violated and unread."""
    found = Counter(host.status for host in report.hosts)
    if found:
        parts = ", ".join(f"{found[s]} {s}" for s in _HOST_STATUSES if found[s])
        yield f"{_count(len(report.hosts), 'host function')}: {parts}"


# The keys are those of the summary in JSON.
PASSES = {
    "decided": (has_decided_launches, "with every launch decided"),
    "unread": (has_unread_launches, "with unread launches"),
    "promised": (rests_on_promises, "on promises"),
}


def _suppressed(number: int, baselined: int) -> str:
    return f"{number} suppressed" + (f" ({baselined} by the baseline)" if baselined else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
