"""Reading ends where more of it says no more, and does no work twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilecheck.frontend.host_programs import HostFunction, read_host_programs
from tilecheck.frontend.host_programs.choices import Choices
from tilecheck.frontend.host_programs.kernels import MOST_COMBINATIONS, Kernels
from tilecheck.frontend.host_programs.knowledge import Knowledge
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.programs import MOST_UNREAD
from tilecheck.frontend.host_programs.values.objects import with_owners
from tilecheck.frontend.host_programs.values.values import Scope
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir.host_program import Work
from tilecheck.ir.launch_footprint import KernelFootprint
from tilecheck.text import decode
from tilecheck.verify.host_functions import footprint_of

Hosts = Callable[[str], dict[str, HostFunction]]


def waits_of(host: HostFunction) -> set[tuple[bool, bool]]:
    works = [a for p in host.programs for a in p.actions if isinstance(a, Work) and a.is_launch]
    return {(work.dependent, work.waits) for work in works}


FLAGS = """
import torch, triton, triton.language as tl

@triton.jit
def flags(x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, PDL: tl.constexpr):
    if PDL:
        tl.extra.cuda.gdc_wait()
    v = tl.load(x)
    if A:
        v += 1
    if B:
        v += 2
    if C:
        v += 3
    tl.store(y, v)

def f(x: torch.Tensor, y: torch.Tensor, a: bool, b: bool, c: bool, pdl: bool):
    if a or b or c:
        x.add_(1)
    if c and b and a:
        x.add_(2)
    flags[(1,)](x, y, A=a, B=b, C=c, PDL=pdl, launch_pdl=pdl)
"""


def test_a_kernel_of_many_flags_is_read_for_a_few_combinations() -> None:
    read: list[Definition] = []

    def counted(definition: Definition) -> KernelFootprint | None:
        read.append(definition)
        return footprint_of(definition)

    table = Project().add(parse(decode("hosts.py", FLAGS.encode())))
    (host,) = read_host_programs(table, counted)
    assert waits_of(host) == {(False, True), (True, True)}
    assert MOST_COMBINATIONS < len(read) <= MOST_COMBINATIONS + 3


def test_whether_a_kernel_waits_is_asked_for_where_no_flag_says_it(hosts: Hosts) -> None:
    found = hosts(
        """
        def f(x: torch.Tensor, y: torch.Tensor, n, settings):
            gated[(1,)](x, y, n, B=128, PDL=settings.lookup(), launch_pdl=True)
        """
    )["f"]
    (why,) = {why for program in found.programs for _, why in program.unread}
    assert why.startswith("whether the kernel waits depends on `PDL`: ")


def test_paths_that_are_all_unread_are_not_all_followed(hosts: Hosts) -> None:
    branches = "\n".join(f"            if settings.flag{k}: x.add_({k})" for k in range(6))
    found = hosts(
        f"""
        def f(x: torch.Tensor, settings, helper):
            side = torch.cuda.Stream()
{branches}
            helper(side)
        """
    )["f"]
    assert all(program.unread for program in found.programs)
    assert len(found.programs) == MOST_UNREAD


def test_a_method_that_is_unread_is_not_read_after_each_other_method(hosts: Hosts) -> None:
    found = hosts(
        """
        class C:
            def __init__(self):
                self.side = torch.cuda.Stream()

            def first(self, helper):
                helper(torch.cuda.Stream())

            def second(self, x: torch.Tensor):
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    x.add_(1)
                torch.cuda.current_stream().wait_stream(self.side)
        """
    )
    (program,) = found["C.first"].programs
    assert program.unread
    assert any(not program.unread for program in found["C.second"].programs)


def test_the_share_of_paths_before_a_path() -> None:
    choices: Choices | None = Choices()
    shares = []
    while choices is not None:
        if choices.pick(2) == 1:
            choices.pick(3)
        shares.append(choices.share_before())
        choices = choices.next()
    assert shares == pytest.approx([0, 1 / 2, 1 / 2 + 1 / 6, 1 / 2 + 2 / 6])


def test_objects_that_come_from_each_other_have_an_end() -> None:
    table = Project().add(parse(decode("hosts.py", b"x = 1\n")))
    m = Machine(table, Choices(), Knowledge(), Kernels(footprint_of))
    m.scopes.append(Scope(table))
    m.sources.update({"made": "maker", "maker": "made"})
    m.knowledge.objects.add("maker")
    region = m.regions(m.handed_in("made", table.parsed.module))[0]
    found = [region.memory for region in with_owners(m, table.parsed.module, [region])]
    assert found[:2] == ["made", "maker"]
