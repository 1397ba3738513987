"""Which kernels rest on tiles with as many elements as the program has threads (S8)."""

from __future__ import annotations

from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures/triton"
RESTING = {
    "in_place/accumulated.py": "sums_of_chunks sums_of_chunks_and_of_their_elements "
    "sums_of_chunks_and_transposed add_row_sums_and_copy sums_of_chunks_by_columns",
    "in_place/earlier_loops.py": "sum_goes_elsewhere sum_of_the_last_round sum_of_integers reduced_in_a_loop "
    "beside_a_larger_tile scanned_by_a_flag",
    "in_place/large_tiles.py": "added_and_normed planes_and_sums transposed_beside "
    "summed_in_an_earlier_loop tile_of_a_warp sum_over_the_first",
    "in_place/layouts.py": "stored_and_transposed beside_sums_of_rows reduced_beside_sums_of_rows",
    "in_place/one_layout.py": "summed_afterwards counted_afterwards summed_as_integers",
    "in_place/reduced.py": "rows_of_a_tile overwritten_then_reduced sum_is_not_stored "
    "sum_cancels branch_on_the_sum",
    "in_place/running_states.py": "scaled_by_rows scaled_by_its_sums laid_out_by_columns spread_over_rows "
    "beside_a_folded_product rises_after_all",
    "in_place/scans.py": "scanned_beside",
    "in_place/folded.py": "",
    "in_place/flows.py": "",
    "in_place/single_elements.py": "",
    "rows/cross_entropy.py": "gradient_over_logits",
    "rows/rms_norm.py": "add_rms_norm_in_place",
}


@pytest.mark.parametrize("name", RESTING)
def test_no_other_kernel_that_is_decided_rests_on_it(name: str, verified) -> None:
    report = verified(FIXTURES / name)
    decided = [k for k in report.kernels if k.verdict.value in ("proved", "conditional")]
    assert [k.name for k in decided if "S8" in k.standing] == RESTING[name].split()


def test_the_sizes_are_those_of_the_tiles(verified) -> None:
    report = verified(FIXTURES / "in_place/large_tiles.py")
    sizes = {k.name: k.terms.large for k in report.kernels if k.terms is not None}
    assert sizes["added_and_normed"] == ("BLOCK",)
    assert sizes["planes_and_sums"] == ("K * V",)
    assert sizes["tile_of_a_warp"] == ("32",)
    assert sizes["small_tile"] == ()
