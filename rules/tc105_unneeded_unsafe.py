"""An unsafe block has nothing to trust.
"""

from __future__ import annotations

from tilecheck.model import Severity
from tilecheck.rule import Rule


# The finding follows from the verdict: every obligation with a site in the block was proved.

RULE = Rule(
    code="TC105",
    name="unneeded-unsafe",
    level=Severity.WARNING,
    summary="an unsafe block has nothing to trust",
    since="0.1.0",
    
)
