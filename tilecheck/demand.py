"""What `--require` asks of a kernel, and how far a kernel falls short of it.

`conditional` asks nothing beyond the exit codes. `launches` asks that each kernel passes and has a launch in
view, that every launch in view is decided, that no premise is somebody's word alone, and that each host
function that uses streams or graphs is read, or checked by `tilecheck.host` as it runs. `proved` asks for the
verdict. Neither a baseline nor a suppression counts here: they leave the verdict and the launches as they are.
"""

from __future__ import annotations

from dataclasses import replace

from tilecheck.hygiene import below_demand, host_below_demand
from tilecheck.model import HostReport, KernelReport, Report, Verdict

LAUNCHES, PROVED = "launches", "proved"
PASSING = frozenset({Verdict.PROVED, Verdict.CONDITIONAL, Verdict.TRUSTED})
_DECIDED = frozenset({"holds", "caller"})


def passes(kernel: KernelReport) -> bool:
    """Whether the verdict is one that the gate lets through."""
    return kernel.verdict in PASSING


def has_decided_launches(kernel: KernelReport) -> bool:
    """Whether there is a launch in view, and what each has to meet holds, is the caller's, or is checked when
    it happens."""
    judged = {c.status for launch in kernel.launches for c in launch.conditions}
    return bool(kernel.launches) and not has_unread_launches(kernel) and judged <= _DECIDED


def has_unread_launches(kernel: KernelReport) -> bool:
    return any(launch.is_unread for launch in kernel.launches)


def rests_on_promises(kernel: KernelReport) -> bool:
    """Whether a premise is somebody's word: no launch in view shows it or checks it."""
    return any(premise.status == "promised" for premise in kernel.premises)


def shortfall(kernel: KernelReport, demand: str) -> str:
    """Why a kernel does not meet the demand; empty if it does."""
    word = kernel.verdict.value + (f" ({kernel.reason})" if kernel.reason else "")
    if demand == PROVED:
        return "" if kernel.verdict is Verdict.PROVED else f"it is {word}"
    if demand != LAUNCHES:
        return ""
    if not passes(kernel):
        return f"it is {word}"
    if not kernel.launches:
        return "no launch of it is in view"
    unread = [launch for launch in kernel.launches if launch.is_unread]
    if unread:
        return f"a launch is unread: {unread[0].problem or 'its text is not understood'}"
    open_ = [c for launch in kernel.launches for c in launch.conditions if c.status not in _DECIDED]
    if open_:
        return f"a launch in view leaves it {open_[0].status}: {open_[0].text}"
    promised = [premise.text for premise in kernel.premises if premise.status == "promised"]
    return f"it rests on a promise: {promised[0]}" if promised else ""


def host_shortfall(host: HostReport, demand: str) -> str:
    """Why a host function does not meet the demand; empty if it does."""
    if demand != LAUNCHES or host.status != "unread":
        return ""
    return f"it is unread: {host.reason}"


def held_to(report: Report, demand: str) -> Report:
    """The report with a finding for each kernel and host function that does not meet the demand."""
    found = tuple(
        below_demand(kernel, demand, why) for kernel in report.kernels if (why := shortfall(kernel, demand))
    )
    found += tuple(
        host_below_demand(host, demand, why) for host in report.hosts if (why := host_shortfall(host, demand))
    )
    return replace(report, diagnostics=(*report.diagnostics, *found)) if found else report
