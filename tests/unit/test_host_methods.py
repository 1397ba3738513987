"""What is wrong in one method of a class is reported of that method alone."""

from __future__ import annotations

from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_source

SOURCE = b"""
import torch

class Copies:
    def __init__(self):
        self.side = torch.cuda.Stream()

    def right(self, x: torch.Tensor):
        y = torch.empty_like(x)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            y.copy_(x)
        torch.cuda.current_stream().wait_stream(self.side)
        return y

    def wrong(self, x: torch.Tensor):
        y = torch.empty_like(x)
        with torch.cuda.stream(self.side):
            y.copy_(x)
        torch.cuda.current_stream().wait_stream(self.side)
        return y
"""


def test_a_method_is_not_blamed_for_the_method_called_before() -> None:
    report = verify_source(SOURCE, "copies.py", Options())
    statuses = {host.name: host.status for host in report.hosts}
    assert statuses == {"Copies.__init__": "ordered", "Copies.right": "ordered", "Copies.wrong": "violated"}
