"""What the commands ask of the analysis, so that it is loaded only when a command needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilecheck.garbage import collect_rarely
from tilecheck.options import Options

if TYPE_CHECKING:
    from tilecheck.model import Report


class Engine:
    """The pipeline behind the commands. Tests pass another one to `main`."""

    def verify(self, paths: Sequence[str], options: Options) -> Report:
        """Verify every kernel that the paths lead to."""
        collect_rarely()  # loading the pipeline makes most objects of a short run
        from tilecheck.verify.pipeline import verify_paths  # lazy: `--version` and `explain` verify nothing

        return verify_paths(paths, options)

    def verify_source(self, data: bytes, path: str, options: Options) -> Report:
        """Verify the kernels of a source that counts as the file at `path`."""
        collect_rarely()
        from tilecheck.verify.pipeline import verify_source  # lazy: as above

        return verify_source(data, path, options)

    def show(self, kind: str, path: str, name: str, form: str = "text") -> str:
        """One stage of the pipeline for one kernel, or the order of one host function, as text."""
        from tilecheck.verify.show import HOST, show, show_host  # lazy: as above

        return show_host(path, name, form) if kind == HOST else show(kind, path, name)
