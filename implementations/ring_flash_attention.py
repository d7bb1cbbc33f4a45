"""ring-flash-attention's accumulation, `ring_flash_attn.utils.update_out_and_lse`: torch code, in base e, out in float32.

The package's own import wants flash-attn; its module `utils` does not, so that file is loaded alone. Run on the CPU.
"""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "ring-flash-attn"
require("ring_flash_attn", PACKAGE)


@functools.cache
def _utils() -> Any:
    package = importlib.util.find_spec("ring_flash_attn")
    assert package is not None and package.origin is not None
    spec = importlib.util.spec_from_file_location("ring_flash_attn_utils", Path(package.origin).with_name("utils.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The N states of v [S, N, H, D], s [S, N, H] in turn: blocks are [batch = 1, S, H, D] and [1, H, S]."""
    out = lse = None
    for i in range(v.shape[1]):
        out, lse = _utils().update_out_and_lse(out, lse, v[:, i][None], s[:, i].t()[None])
    assert out is not None and lse is not None
    return out[0].to(v.dtype), lse[0, ..., 0]


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two blocks."""
    return merge_states(torch.stack((v_a, v_b), 1), torch.stack((s_a, s_b), 1))


# An empty state that comes first: lse - logsigmoid(lse - block) is -inf + inf.
_NAN = "s is NaN where the first state is empty"
# lse - logsigmoid(lse - block) and out - sigmoid(block - lse) (out - block) lose the smaller of two numbers.
_CANCELS = "the updates of s and v cancel"
_AFTER_EMPTY = (
    "test_many_states_merge_within_the_bound",
    "test_two_states_merge_within_the_bound",
    "test_what_broke_other_kernels_comes_out_right",
    "TestMergeTrees",
    "test_all_parts_at_once_equal_unsplit_attention",
    "test_any_tree_of_merges_equals_unsplit_attention",
    "test_merging_is_associative",
    "test_merging_with_empty_again_and_again_changes_nothing",
    "test_merging_with_empty_changes_nothing",
    "test_one_state_among_empties_is_copied",
)
_AT_SIZES = (
    "test_any_head_size",
    "test_any_number_of_heads",
    "test_any_number_of_states",
    "test_more_rows_than_a_grid_dimension",
)
_SOMETIMES = (
    "test_a_v_that_is_not_finite_is_never_hidden",
    "test_an_lse_that_is_none_poisons_its_row_and_no_other",
    "test_merging_is_commutative",
    "test_empties_among_states_change_nothing",
    "test_n_states_equal_any_tree_of_two",
    "test_the_order_of_the_states_does_not_matter",
    "test_merging_in_one_base_is_merging_in_the_other",
    "test_a_shift_of_every_s_shifts_s_and_leaves_v",
    "test_a_constant_v_stays_that_constant",
    "test_v_times_a_power_of_two_scales_the_result",
    "test_the_result_lies_among_the_states",
    "test_nearly_all_weight_on_a_state_gives_that_state",
    "test_a_row_alone_has_the_bits_it_has_in_a_batch",
    "test_poison_in_other_rows_stays_there",
    "test_rows_and_heads_may_be_permuted_and_repeated",
    "test_every_element_is_written",
    "test_a_square_s_is_not_read_transposed",
    "test_strides_of_many_states_do_not_matter",
    "test_strides_of_two_states_do_not_matter",
    "test_the_default_dtype_does_not_matter",
    "test_the_same_inputs_give_the_same_bits",
)

implementation = Implementation(
    name="ring_flash_attention",
    merge_state=merge_state,
    merge_states=merge_states,
    lse_base="e",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),
    known_failures=(
        *((name, _NAN) for name in _AFTER_EMPTY),
        *((name, _CANCELS) for name in _AT_SIZES),
        *((name, f"at times: {_NAN}, or {_CANCELS}") for name in _SOMETIMES),
        ("test_nothing_gives_nothing", "N = 0 is refused"),
    ),
)
