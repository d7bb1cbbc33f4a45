"""Law 14: only the outputs are written, and all of them.

Every property checks this, since every call has poisoned and guarded memory around it (properties/call.py). The ones here
look at the corners of memory: last elements, masked rows, states that are not asked for.
"""

import math
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from properties import call
from properties.broken import Evidence, LawBroken
from properties.cases import Problem, States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.strategies import filled_states, pairs, problems

ODD_SHAPES: dict[str, Any] = {"rows": 7, "heads": 5, "dims": (1, 3, 5, 7, 8, 24, 33, 48, 80, 96, 112, 160, 192)}


@law(14)
@given(problem=problems(filled=True, v_regimes=("ordinary",), **ODD_SHAPES))
def test_every_element_is_written(problem: Problem) -> None:
    """Of finite states every output element is finite, though outputs start as NaN; inputs and guard zones keep their bytes."""
    v, s = problem.tensors()
    out_v, out_s = problem.merged(v, s)
    for output, tensor in (("v", out_v), ("s", out_s)):
        unwritten = ~torch.isfinite(tensor)
        if bool(unwritten.any()):
            first = unwritten.nonzero()[0].tolist()
            fault = f"{int(unwritten.sum())} of {tensor.numel()} elements of {output} were not written, the first at {first}"
            evidence = Evidence(
                problem.operation, "every element is written", {"v": v, "s": s}, problem.base, actual=fault
            )
            raise LawBroken(f"{problem.operation}, v of shape {tuple(out_v.shape)}: {fault}", evidence)
    assert_within_bound(problem.operation, v, s, (out_v, out_s), problem.base)


@law(14, "merge_state_in_place")
@given(case=pairs(rows=6), chosen=st.lists(st.booleans(), min_size=6, max_size=6), poison=st.booleans())
def test_masked_rows_keep_their_bits(case: States, chosen: list[bool], poison: bool) -> None:
    """Where the mask is False the row is not touched, even if the other state is NaN there; elsewhere it is merged."""
    v, s = case.tensors()
    mask = torch.tensor(chosen[: case.rows], device=v.device)
    v, s = v.clone(), s.clone()
    if poison:
        v[~mask, 1] = math.nan
        s[~mask, 1] = math.nan
    out_v, out_s = call.merge_state_in_place(v[:, 0], s[:, 0], v[:, 1], s[:, 1], mask, case.base)
    inputs = {"v": v, "s": s, "mask": mask}
    kept = out_v[~mask], out_s[~mask]
    claim = "rows where the mask is False keep their bits"
    assert_same_bits("merge_state_in_place", claim, kept, (v[~mask, 0], s[~mask, 0]), inputs)
    assert_within_bound("merge_state_in_place", v[mask], s[mask], (out_v[mask], out_s[mask]), case.base)


@law(14, "merge_state_in_place")
@given(case=filled_states(count=st.just(2), rows=4))
def test_a_mask_of_nothing_writes_nothing(case: States) -> None:
    """With the mask False everywhere every bit stays, and with it True everywhere the rows are those without a mask."""
    v, s = case.tensors()
    two = v[:, 0], s[:, 0], v[:, 1], s[:, 1]
    none = call.merge_state_in_place(*two, torch.zeros(case.rows, dtype=torch.bool, device=v.device), case.base)
    assert_same_bits(
        "merge_state_in_place", "an empty mask changes nothing", none, (v[:, 0], s[:, 0]), {"v": v, "s": s}
    )
    every = call.merge_state_in_place(*two, torch.ones(case.rows, dtype=torch.bool, device=v.device), case.base)
    bare = call.merge_state_in_place(*two, None, case.base)
    assert_same_bits("merge_state_in_place", "a full mask is no mask", every, bare, {"v": v, "s": s})
