"""The reference backend: interprets a kernel's own syntax tree in NumPy and logs every access.

It shares no code with the front end, the IR or the proof, and so judges their claims.
"""

from tilecheck.jit.reference.log import (
    AccessRecord,
    Call,
    Launch,
    Log,
    NotInterpretable,
    ReplayError,
    StepLimit,
    UndefinedRecord,
)
from tilecheck.jit.reference.run import run

__all__ = [
    "AccessRecord",
    "Call",
    "Launch",
    "Log",
    "NotInterpretable",
    "ReplayError",
    "StepLimit",
    "UndefinedRecord",
    "run",
]
