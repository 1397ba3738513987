"""`required-version`."""

from __future__ import annotations

import pytest

from tilecheck.config.versions import is_met


@pytest.mark.parametrize(
    ("required", "met"),
    [
        ("0.1.0", True),
        ("==0.1", True),
        ("0.1.1", False),
        ("!=0.1", False),
        (">=0.1,<0.2", True),
        (">= 0.1 , < 0.1.0.1", True),
        (">0.1", False),
        (">0.0.9", True),
        ("<=0.1", True),
        ("<0.1", False),
        ("~=0.1", True),
        ("~=0.1.0", True),
        ("~=0.0.9", False),
        (">=0.10", False),
    ],
)
def test_what_a_version_meets(required: str, met: bool) -> None:
    assert is_met(required, "0.1.0") is met
    assert is_met(required, "0.1.0.dev3+local") is met


@pytest.mark.parametrize("required", ["", "latest", ">=0.1,", "=0.1", ">=0.1 <0.2", "~=1", "0.1.*"])
def test_what_is_no_demand(required: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        is_met(required, "0.1.0")
