"""Law 16: in place equals out of place."""

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
@given(case=filled_states(count=st.just(2)), alias=st.sampled_from(["itself", "its v", "its s"]))
def test_an_output_that_aliases_an_input_is_right_or_refused(case: States, alias: str) -> None:
    """Merged with itself, or with a state that shares its v or its s, the state is right, or the call is a ValueError."""
    states_v, states_s = case.tensors()
    if alias != "its s":
        states_v[:, 1] = states_v[:, 0]
    if alias != "its v":
        states_s[:, 1] = states_s[:, 0]
    turned = subject.current().s_layout == "HS"
    v, s = states_v[:, 0].clone(), (states_s[:, 0].t() if turned else states_s[:, 0]).contiguous().clone()
    v_other = states_v[:, 1].clone() if alias == "its s" else v
    s_other = (states_s[:, 1].t() if turned else states_s[:, 1]).contiguous().clone() if alias == "its v" else s
    before = v.clone(), s.clone()
    keywords = {"lse_base": case.base} if subject.current().lse_base == "either" else {}
    try:
        subject.current().merge_state_in_place(v, s, v_other, s_other, None, **keywords)  # type: ignore[misc]
    except ValueError:
        assert_same_bits("merge_state_in_place", "refused, it writes nothing", (v, s), before, {"v": v, "s": s})
        return
    assert_within_bound("merge_state_in_place", states_v, states_s, (v, s.t() if turned else s), case.base)
