"""Law 16: in place equals out of place."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from properties import call, subject
from properties.cases import States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.strategies import filled_states, pairs


@law(16, "merge_state", "merge_state_in_place")
@given(case=pairs())
def test_in_place_equals_out_of_place(case: States) -> None:
    """merge_state_in_place leaves the bits that merge_state returns."""
    v, s = case.tensors()
    out = call.merge("merge_state_in_place", v, s, case.base)
    assert_within_bound("merge_state_in_place", v, s, out, case.base)
    if subject.claims("in_place"):
        wanted = call.merge("merge_state", v, s, case.base)
        assert_same_bits("merge_state_in_place", "in place has the bits of out of place", out, wanted, {"v": v, "s": s})


@law(16, "merge_state_in_place")
@given(case=filled_states(count=st.just(1)), alias=st.sampled_from(["itself", "its v", "its s"]))
def test_an_output_that_aliases_an_input_is_right_or_refused(case: States, alias: str) -> None:
    """Merged with itself, or with a state that shares its v or its s, the state is right, or the call is a ValueError."""
    v, s = (tensor[:, 0].contiguous() for tensor in case.tensors())
    before_v, before_s = v.clone(), s.clone()
    v_other = v if alias != "its s" else v.clone()
    s_other = s if alias != "its v" else s.clone()
    keywords = {"lse_base": case.base} if subject.current().lse_base == "either" else {}
    turned = subject.current().s_layout == "HS"
    if turned:
        s, s_other = s.t().contiguous(), s_other.t().contiguous()
        s_other = s if alias != "its v" else s_other
    merge_in_place = subject.current().merge_state_in_place
    assert merge_in_place is not None
    try:
        merge_in_place(v, s, v_other, s_other, None, **keywords)
    except ValueError:
        wanted = before_v, before_s.t().contiguous() if turned else before_s
        assert_same_bits("merge_state_in_place", "refused, it writes nothing", (v, s), wanted, {"v": v, "s": s})
        return
    both_v, both_s = torch.stack([before_v, before_v], dim=1), torch.stack([before_s, before_s], dim=1)
    assert_within_bound("merge_state_in_place", both_v, both_s, (v, s.t() if turned else s), case.base)
