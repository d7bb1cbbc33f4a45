"""attention-gym's `merge_attention`: torch code, in base e. Its result is float32 where s is; it is rounded to v's dtype.

v [..., S, D] and s [..., S]. Read in attn-gym 0.0.17.
"""

import torch

from implementations import require
from mergelaws.implementation import Implementation

PACKAGE = "attn-gym"
require("attn_gym", PACKAGE)
from attn_gym.utils import merge_attention  # noqa: E402  # after what says that it is missing


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two states, v [S, H, D] and s [S, H]."""
    v, s = merge_attention(v_a, s_a, v_b, s_b)
    return v.to(v_a.dtype), s


_WHY = "two empty states give NaN; what s = -inf means is not documented"
_ALWAYS = (
    "test_two_states_merge_within_the_bound",
    "test_what_broke_other_kernels_comes_out_right",
    "TestMergeTrees",
    "test_merging_is_commutative",
    "test_merging_with_empty_changes_nothing",
)
_AT_TIMES = (
    "test_merging_is_associative",
    "test_any_tree_of_merges_equals_unsplit_attention",
    "test_an_lse_that_is_none_poisons_its_row_and_no_other",
    "test_merging_with_empty_again_and_again_changes_nothing",
    "test_poison_in_other_rows_stays_there",
    "test_a_row_alone_has_the_bits_it_has_in_a_batch",
    "test_rows_and_heads_may_be_permuted_and_repeated",
    "test_strides_of_two_states_do_not_matter",
    "test_the_default_dtype_does_not_matter",
    "test_the_same_inputs_give_the_same_bits",
)
_KNOWN = (*((name, _WHY) for name in _ALWAYS), *((name, f"at times: {_WHY}") for name in _AT_TIMES))

implementation = Implementation(
    name="attention_gym",
    merge_state=merge_state,
    lse_base="e",
    empty_v="finite",
    bitwise=frozenset({"layout", "repeat"}),  # -0.0 merged with an empty state is 0.0
    known_failures=_KNOWN,
    differs=tuple((name, _WHY) for name in (*_ALWAYS, *_AT_TIMES)),
)
