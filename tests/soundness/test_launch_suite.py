"""The labelled launches of `fixtures/launches`: the labels are true, and what a run says of them."""

from __future__ import annotations

from collections import Counter

import pytest
from soundness_launch_suite import Bars, Counts, Scored, by_kind, files, missed, scored, table
from soundness_launch_truth import Label, read_labels, truth, wrong_labels

from tilecheck.report.emitters.json import to_object

# Hosts that run for seconds: `benchmarks/launch_suite.py --truth` runs them.
LARGE = ("large_literals", "wrap_32", "cannot_start", "tuned_configs")
LEAST_PAIRS, LEAST_KINDS, LEAST_OF_KIND = 150, 14, 6


@pytest.fixture(scope="module")
def results(verified) -> list[Scored]:
    return [one for path in files() for one in scored(path, to_object(verified(path)))]


@pytest.mark.parametrize(
    "path", [p for p in files() if p.stem not in LARGE], ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_labels_are_borne_out_by_runs_of_the_hosts(path) -> None:
    assert not wrong_labels(path.read_text(encoding="utf-8"), count=30, most=32)


def test_the_suite_is_large_and_balanced() -> None:
    labels = [
        (path.parent.name, label) for path in files() for label in read_labels(path.read_text(encoding="utf-8"))
    ]
    pairs = [(language, one) for language, one in labels if one.word in ("violated", "unmet", "passes")]
    assert len(pairs) >= LEAST_PAIRS
    words = Counter(one.word == "passes" for _, one in pairs)
    assert min(words.values()) >= LEAST_PAIRS // 2
    assert min(Counter(language for language, _ in pairs).values()) >= LEAST_PAIRS * 0.45
    kinds = Counter(one.kind for _, one in pairs)
    assert "" not in kinds
    assert sum(count >= LEAST_OF_KIND for count in kinds.values()) >= LEAST_KINDS
    assert len({(language, one.kernel) for language, one in labels}) == len(labels)


def test_every_labelled_kernel_is_reported(results: list[Scored]) -> None:
    assert not [r for r in results if r.came == "missing"]


def test_no_right_launch_is_called_wrong(results: list[Scored]) -> None:
    assert not [
        r.label.kernel for r in results if r.label.word == "passes" and r.came in ("violated", "refused")
    ]


def test_the_bars_are_reached(results: list[Scored]) -> None:
    problems = missed(results, Bars())
    assert not problems, "\n".join((*problems, table(results)))


# ---- the scoring itself --------------------------------------------------------------------------------------


def _result(word: str, came: str, *statuses: str) -> Scored:
    return Scored("f.py", Label("k", word, "kind", 1), came, statuses)


def test_a_wrong_launch_that_passes_is_named() -> None:
    [first, *_] = missed([_result("violated", "passed", "caller")], Bars(statuses=False))
    assert first == "1 wrong ones pass: k (passed)"


def test_a_requirement_that_is_not_met_is_no_clean_pass() -> None:
    results = [_result("passes", "unmet", "unmet")]
    assert Counts.of(results).right == Counter(unmet=1)
    assert missed(results, Bars(statuses=False))


def test_all_bars_hold_where_everything_is_right() -> None:
    results = [_result("passes", "passed", "holds", "caller"), _result("violated", "violated", "broken")]
    results += [_result("unmet", "unknown", "unmet"), _result("unread", "unmet", "unread")]
    assert missed(results, Bars()) == []
    assert by_kind(results)["kind"].caller == 1


def test_a_label_that_is_false_is_found() -> None:
    text = (
        "import torch\nimport triton\nimport triton.language as tl\n\n\n"
        "# kind: a\n# expect: passes\n@triton.jit\ndef k(x, B: tl.constexpr):\n"
        "    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 0.0)\n\n\n"
        "# args: x[N]\ndef host(x):\n    k[(triton.cdiv(x.numel(), 8),)](x, B=8)\n"
    )
    assert truth(text)["k"].harmful
    [problem] = wrong_labels(text)
    assert "`k` is called right" in problem
