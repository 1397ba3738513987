"""The reference backend: interprets a kernel's own syntax tree in NumPy and logs every access.

It shares no code with the front end, the IR or the proof, and so judges their claims.
"""

from tilecheck.reference.log import (
    AccessRecord,
    Call,
    Launch,
    Log,
    NotInterpretable,
    ReplayError,
    StepLimit,
    UndefinedRecord,
)

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


def run(launch: Launch, *, record: bool = True) -> Log:
    """Run a launch and report everything that it did, as `running.run_launch` says."""
    from tilecheck.reference.running import run_launch  # lazy: loads the interpreter

    return run_launch(launch, record=record)
