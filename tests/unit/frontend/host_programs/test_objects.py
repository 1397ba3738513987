"""Objects of code that is not in view: calls of them touch what they hold, and what objects may share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Paths = Callable[..., list[list[str]]]


def test_a_call_of_an_object_reads_what_objects_share_and_a_method_writes_it(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, model, optimizer):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                model(x)
            optimizer.step()
        """
    )
    assert [line for line in path if line.startswith("launch")] == [
        "launch model on side: reads ~x, ~model, ~what objects share writes ~x, ~model, ~model (2)",
        "launch step on current: reads ~optimizer, ~what objects share writes ~optimizer, ~what objects share",
    ]


@pytest.mark.parametrize(
    "part",
    ["model.weight", "[*model.parameters()][0]", "next(model.buffers())"],
)
def test_a_part_of_an_object_is_touched_with_the_object(paths: Paths, part: str) -> None:
    for path in paths(
        f"""
        def f(x: torch.Tensor, model: torch.nn.Module):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                {part}.copy_(x)
            return model(x)
        """
    ):
        copied = next(line for line in path if " copy_ on side" in line)
        assert "~model" in copied.partition("writes")[2]
        assert "~what objects share" in copied.partition("writes")[2]


def test_modules_of_torch_only_read_what_they_are_given(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor):
            side = torch.cuda.Stream()
            linear, relu = torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True)
            with torch.cuda.stream(side):
                linear(x)
                relu(x)
        """
    )
    first, second = (line.partition("writes")[2] for line in path if line.startswith("launch"))
    assert "~x" not in first
    assert "~x" in second


def test_containers_hold_and_touch_nothing(paths: Paths) -> None:
    (path,) = paths(
        """
        def f(x: torch.Tensor, queue):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                queue.append(x)
        """
    )
    assert not path


def test_what_is_taken_from_a_container_may_be_what_was_put_into_it(paths: Paths) -> None:
    for taken in ("queue.popleft()", "queue[0]", "next(iter([*queue]))", "queue.pop(0)"):
        found = paths(
            f"""
            def f(x: torch.Tensor, queue):
                side = torch.cuda.Stream()
                queue.append(x)
                {taken}.add_(1)
            """
        )
        assert {path[0].partition("writes ")[2] for path in found} >= {"x"}, taken


def test_data_classes_make_what_their_factories_give(paths: Paths) -> None:
    (path,) = paths(
        """
        from dataclasses import dataclass, field

        @dataclass
        class Slot:
            buffer: torch.Tensor
            done: torch.cuda.Event = field(default_factory=torch.cuda.Event)
            used: int = field(default=0)

        def f(x: torch.Tensor):
            a, b = Slot(x), Slot(x)
            a.done.record()
            b.done.record()
            torch.cuda.Stream().wait_event(a.done)
        """
    )
    assert path == ["record done on current", "record done (2) on current", "stream awaits done"]
