"""Law 2: attention over parts of the keys, merged, is attention over all keys.

The oracle here is attention over the union of the keys, from scores and values; the merge formula is not used.
"""

import math
from dataclasses import dataclass

import torch
from hypothesis import given
from hypothesis import strategies as st

from oracles.attention import attention
from properties import record, subject, trees
from properties.laws import law
from properties.strategies import dtypes, head_dims, lse_bases

MASKED = -math.inf


@dataclass(frozen=True)
class Split:
    """Keys with natural-log scores and values in -1000 .. 1000, each in one of `parts` parts; the rest may be empty.

    part_of, values and picks are used again from the start where there are more keys, elements or merges than entries.
    """

    dtype: str = "float32"
    base: int | str = 2
    dim: int = 1
    scores: tuple[float, ...] = (1.0, 2.0, 3.0, 0.0)
    values: tuple[float, ...] = (10.0, 20.0, 30.0, 40.0)
    parts: int = 2
    part_of: tuple[int, ...] = (0, 0, 1, 1)
    picks: tuple[int, ...] = (0,)

    def rows(self) -> list[list[float]]:
        """The values, one row of D per key."""
        cycle = self.values
        return [[cycle[(key + 3 * d) % len(cycle)] for d in range(self.dim)] for key in range(len(self.scores))]

    def states(self) -> list[trees.Tracked]:
        """The state of each part, computed exactly and stored."""
        told = []
        for part in range(self.parts):
            keys = [
                key for key in range(len(self.scores)) if self.part_of[key % len(self.part_of)] % self.parts == part
            ]
            values = self.rows()
            state = attention([self.scores[k] for k in keys], [values[k] for k in keys], self.base, dim=self.dim)
            told.append(trees.rounded(state, getattr(torch, self.dtype), subject.device()))
        return told

    def check(self, operation: str, state: trees.Tracked) -> None:
        """The merged state is within its composed bound of attention over all keys."""
        record.regime(f"split of {len(self.scores)} keys" if len(self.scores) < 3 else "split of 3 keys or more")
        right = attention(self.scores, self.rows(), self.base, dim=self.dim)
        inputs = {"s of the parts": torch.cat([part.s.reshape(-1) for part in self.states()])}
        trees.assert_tracked(operation, state, right, inputs, self.base)


def splits() -> st.SearchStrategy[Split]:
    """Random splits of random score vectors: any partition, empty parts, masked keys, any order, any tree."""
    score = st.one_of(
        st.sampled_from([0.0, 1.0, 2.0, MASKED, -3.0, 30.0, 88.0, 800.0, -800.0, 1e4]),
        st.floats(-60, 60, width=32),
    )
    return st.builds(
        Split,
        dtype=dtypes(),
        base=lse_bases(),
        dim=head_dims((1, 2, 3)),
        scores=st.lists(score, min_size=1, max_size=14).map(tuple),
        values=st.lists(st.floats(-1000, 1000, width=16, allow_subnormal=False), min_size=1, max_size=8).map(tuple),
        parts=st.integers(1, 6),
        part_of=st.lists(st.integers(0, 5), min_size=1, max_size=14).map(tuple),
        picks=st.lists(st.integers(0, 11), min_size=1, max_size=12).map(tuple),
    )


@law(2, "merge_state")
@given(split=splits())
def test_any_tree_of_merges_equals_unsplit_attention(split: Split) -> None:
    """merge(... merge(A_i, A_j) ...) = attention(A_1 u ... u A_n), within the composed bound."""
    split.check("merge_state", trees.tree(split.states(), split.picks, split.base))


@law(2, "merge_state_in_place")
@given(split=splits())
def test_states_taken_in_one_by_one_equal_unsplit_attention(split: Split) -> None:
    """A_1 <- A_1 + A_2, A_1 <- A_1 + A_3, ... = attention(A_1 u ... u A_n), within the composed bound."""
    first, *others = split.states()
    for other in others:
        first = trees.merged(first, other, split.base, "merge_state_in_place")
    split.check("merge_state_in_place", first)


@law(2, "merge_states")
@given(split=splits())
def test_all_parts_at_once_equal_unsplit_attention(split: Split) -> None:
    """merge(A_1, ..., A_n) = attention(A_1 u ... u A_n), within the composed bound."""
    split.check("merge_states", trees.all_merged(split.states(), split.base))


@law(2, "variable_length_merge_states")
@given(split=splits())
def test_one_segment_equals_unsplit_attention(split: Split) -> None:
    """The segment A_1, ..., A_n = attention(A_1 u ... u A_n), within the composed bound."""
    state = trees.all_merged(split.states(), split.base, "variable_length_merge_states")
    split.check("variable_length_merge_states", state)
