"""What the server knows of one version of one document."""

from __future__ import annotations

from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.lsp.positions import UTF16, Positions
from tilecheck.model import KernelReport, Report
from tilecheck.report.places import Places, kernels_in_order


@dataclass(frozen=True, slots=True)
class Analysed:
    """The report of one version of a document. `problem` says why there is none: it is the user's to solve
    (a configuration that is not understood) or a bug of ours."""

    uri: str
    path: str
    version: int
    data: bytes  # the text in UTF-8: the bytes that spans count
    report: Report
    problem: str = ""
    encoding: str = UTF16
    _places: Places = field(init=False)

    def __post_init__(self) -> None:
        known = {**self.report.sources, self.path: self.data}
        object.__setattr__(self, "_places", Places(known))

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """The kernels that are defined in this document."""
        return kernels_in_order(k for k in self.report.kernels if k.site.file == self.path)

    def positions(self, file: str | None = None) -> Positions:
        """The places of the document, or of another file that the report names."""
        return Positions(self._places.source(file or self.path), self.encoding)
