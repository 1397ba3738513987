"""The refusal of an action that would break ownership."""

from __future__ import annotations

from tilecheck.errors import TilecheckError


class HostRefused(TilecheckError):
    """An action of the host that would break ownership. It has not reached the GPU.

    `code` is the code of the static rule that finds the same mistake in the text of a program (`TC411`, ...),
    or empty where there is none. `partial` says that earlier parts of a composed operation were enqueued.
    """

    def __init__(self, code: str, message: str, *notes: str) -> None:
        lines = [f"{message} [{code}]" if code else message, *(f"   = {note}" for note in notes)]
        super().__init__("\n".join(lines))
        self.code = code
        self.message = message
        self.notes = notes
        self.partial = False
