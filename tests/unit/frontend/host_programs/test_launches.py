"""Launches of kernels, plain and dependent, read into host programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Paths = Callable[..., list[list[str]]]


def test_a_chain_of_dependent_launches(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, w: torch.Tensor, n):
            a = torch.empty_like(x)
            b = torch.empty_like(x)
            double[(1,)](x, a, n, B=128, launch_pdl=True)
            waiting[(1,)](a, w, b, n, B=128, launch_pdl=True)
            return b
        """
    )
    assert path[2:4] == [
        (
            "launch double on current dependent, perhaps without a wait: "
            "before the wait reads ~x, x[0:1] writes ~a, a[0:1]"
        ),
        (
            "launch waiting on current dependent: before the wait reads ~w, w[0:1]; "
            "reads ~a, a[0:1] writes ~b, b[0:1]"
        ),
    ]


def test_a_flag_decides_the_launch_and_its_wait_together(paths: Paths) -> None:
    plain, dependent = sorted(
        paths(
            """
            def f(x: torch.Tensor, y: torch.Tensor, n, pdl: bool):
                gated[(1,)](x, y, n, B=128, PDL=pdl, launch_pdl=pdl)
            """
        ),
        key=lambda path: "dependent" in path[0],
    )
    assert plain == ["launch gated on current: reads ~x, x[0:1] writes ~y, y[0:1]"]
    assert dependent == ["launch gated on current dependent: reads ~x, x[0:1] writes ~y, y[0:1]"]


@pytest.mark.parametrize(
    "flag", ["may_depend(x.device)", "fits(x.shape, x.dtype)", "torch.cuda.get_device_capability() >= (9, 0)"]
)
def test_what_a_card_can_do_decides_the_launch_and_its_wait_together(paths: Paths, flag: str) -> None:
    """Sizes, types and devices hold no memory: code that is not in view gives nothing of the tensor back."""
    plain, dependent = sorted(
        paths(
            f"""
            def f(x: torch.Tensor, y: torch.Tensor, n):
                early = {flag}
                gated[(1,)](x, y, n, B=128, PDL=early, launch_pdl=early)
            """
        ),
        key=lambda path: "dependent" in path[-1],
    )
    assert plain[-1] == "launch gated on current: reads ~x, x[0:1] writes ~y, y[0:1]"
    assert dependent[-1] == "launch gated on current dependent: reads ~x, x[0:1] writes ~y, y[0:1]"


def test_launches_of_cutile_name_their_stream(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, y: torch.Tensor):
            side = torch.cuda.Stream()
            ct.launch(side, (4,), copied, (x, y), programmatic_dependent_launch=True)
            tilecheck.launch(side.cuda_stream, (4,), copied, (x, y))
        """
    )
    assert path == [
        (
            "launch copied on side dependent, perhaps without a wait: "
            "before the wait reads ~x, x[0:1] writes ~y, y[0:1]"
        ),
        "launch copied on side: reads ~x, x[0:1] writes ~y, y[0:1]",
    ]


def test_the_elements_that_all_programs_touch_are_exact(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            assert x.shape == (4096,)
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                double[(2,)](x[:2048], x[2048:], 2048, B=1024)
        """
    )
    assert path == ["launch double on side: reads x[0:2048] writes x[2048:4096]"]


def test_a_grid_that_covers_less_is_no_more(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            assert x.shape == (4096,)
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                double[(1,)](x[:2048], x[2048:], 2048, B=1024)
        """
    )
    assert path == ["launch double on side: reads ~x[0:2048], x[0:1024] writes ~x[2048:4096], x[2048:3072]"]


def test_verified_kernels_are_launched_as_they_are(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, y: torch.Tensor, n):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                tilecheck.verified(double)[(1,)](x, y, n, B=128)
        """
    )
    assert path == ["launch double on side: reads ~x, x[0:1] writes ~y, y[0:1]"]


def test_a_kernel_that_is_not_in_view_may_touch_all_it_gets(paths: Paths) -> None:
    launched, dependent = (
        paths(
            f"""
            def f(x: torch.Tensor, y: torch.Tensor, kernel):
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    kernel[(1,)](x, y, 3{option})
            """
        )
        for option in ("", ", launch_pdl=True")
    )
    assert launched == [["launch kernel[1] on side: reads ~x, ~y writes ~x, ~y"]]
    assert dependent[0][-1].startswith("unread whether this dependent launch waits is not known")


def test_the_launch_before_the_call_may_still_write_what_is_touched_before_the_wait(paths: Paths) -> None:
    starts = {
        "": True,
        "x.zero_()": False,
        "torch.cuda.synchronize()": False,
    }
    for start, doubted in starts.items():
        (path,) = paths(
            f"""
            def f(x: torch.Tensor, y: torch.Tensor):
                {start}
                double[(4,)](x, x, 512, B=128, launch_pdl=True)
            """
        )
        why = "unread what `double` touches before it waits may still be written by the launch before this call"
        assert (why in path) == doubted, start
