"""Annotated fixtures: expectations beside the code, matched exactly both ways.

`tilecheck test` and the tests of this project read fixtures through this package; it is public, so that
kernels and rules of other projects can be tested alike.
"""

from __future__ import annotations

from tilecheck.testing.expect import AnnotationError, Expectations, read_expectations
from tilecheck.testing.fixtures import Problem, check_fixture, compare, fixture_kernels, fixture_problems

__all__ = [
    "AnnotationError",
    "Expectations",
    "Problem",
    "check_fixture",
    "compare",
    "fixture_kernels",
    "fixture_problems",
    "read_expectations",
]
