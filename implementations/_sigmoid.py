"""What is known of the merges that accumulate v - sigmoid(s_b - s_a) (v - v_b) and s - logsigmoid(s_a - s_b).

Three packages do, each in torch: PyTorch's `_SDPAMerger`, ring-flash-attention and NATTEN.
"""

# s - logsigmoid(s - s_b) is -inf + inf. None of the three documents what s = -inf means.
_EMPTY = "s is NaN where the first state is empty, which is not documented"
# s - logsigmoid(s - s_b) and v - sigmoid(s_b - s) (v - v_b) subtract numbers that may be far larger than the result.
_CANCELS = "the updates of s and v cancel"
_ZERO = "N = 0 is refused"

_FIRST_EMPTY = (
    "test_two_states_merge_within_the_bound",
    "test_what_broke_other_kernels_comes_out_right",
    "TestMergeTrees",
    "test_merging_with_empty_changes_nothing",
    "test_merging_with_empty_again_and_again_changes_nothing",
    "test_one_state_among_empties_is_copied",
)
_AT_TIMES_EMPTY = (
    "test_merging_is_associative",
    "test_all_parts_at_once_equal_unsplit_attention",
    "test_any_tree_of_merges_equals_unsplit_attention",
    "test_an_lse_that_is_none_poisons_its_row_and_no_other",
    "test_empties_among_states_change_nothing",
    "test_merging_is_commutative",
    "test_n_states_equal_any_tree_of_two",
    "test_poison_in_other_rows_stays_there",
    "test_the_order_of_the_states_does_not_matter",
)
_CANCELLING = (
    "test_many_states_merge_within_the_bound",
    "test_any_head_size",
    "test_any_number_of_heads",
    "test_any_number_of_states",
    "test_more_rows_than_a_grid_dimension",
    "test_the_size_of_the_batch_changes_no_bit",
)
_AT_TIMES_CANCELLING = (
    "test_the_worst_rows_known_stay_within_the_bound",
    "test_a_v_that_is_not_finite_is_never_hidden",
    "test_n_copies_count_n_times",
    "test_merging_in_one_base_is_merging_in_the_other",
    "test_a_shift_of_every_s_shifts_s_and_leaves_v",
    "test_a_constant_v_stays_that_constant",
    "test_v_times_a_power_of_two_scales_the_result",
    "test_the_result_lies_among_the_states",
    "test_nearly_all_weight_on_a_state_gives_that_state",
    "test_a_row_alone_has_the_bits_it_has_in_a_batch",
    "test_rows_and_heads_may_be_permuted_and_repeated",
    "test_every_element_is_written",
    "test_a_square_s_is_not_read_transposed",
    "test_strides_of_many_states_do_not_matter",
    "test_strides_of_two_states_do_not_matter",
    "test_the_default_dtype_does_not_matter",
    "test_the_same_inputs_give_the_same_bits",
)

KNOWN_FAILURES = (
    *((name, _EMPTY) for name in _FIRST_EMPTY),
    *((name, f"at times: {_EMPTY}") for name in _AT_TIMES_EMPTY),
    *((name, _CANCELS) for name in _CANCELLING),
    *((name, f"at times: {_CANCELS}, or {_EMPTY}") for name in _AT_TIMES_CANCELLING),
    ("test_nothing_gives_nothing", _ZERO),
)
# Counted where the failing input has an empty state, or an s that is no LSE.
DIFFERS = (
    *((name, _EMPTY) for name, _ in KNOWN_FAILURES),
    ("test_an_lse_that_is_none_poisons_its_row_and_no_other", "what s = NaN and s = inf mean is not documented"),
    ("test_nothing_gives_nothing", f"{_ZERO}, which is not documented"),
)
