"""Launches of kernels, plain and dependent, read into host programs."""

from __future__ import annotations

from collections.abc import Callable

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
