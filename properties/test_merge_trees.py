"""Law 2, as a machine: arbitrary key sets merged in arbitrary order, held to attention over the union at every step."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule

from oracles.attention import attention
from oracles.exact import Exact
from properties import call, deadline, record, subject, trees
from properties.laws import law

Key = tuple[float, tuple[float, ...]]  # score and value; the value is used again along D

KEYS = st.lists(
    st.tuples(
        st.one_of(st.floats(-80, 80, width=32), st.sampled_from([0.0, -math.inf, 700.0, -700.0])),
        st.lists(st.floats(-100, 100, width=16, allow_subnormal=False), min_size=1, max_size=2).map(tuple),
    ),
    max_size=4,
)


class MergeTrees(RuleBasedStateMachine):
    """A forest of states over disjoint key sets; each rule makes a new tree and checks it against unsplit attention."""

    states = Bundle("states")

    @initialize(dtype=st.integers(0, 2), base=st.integers(0, 1))
    def choose(self, dtype: int, base: int) -> None:
        """One dtype and one base for the whole run."""
        call.forget()
        record.example_begins(2, "test_merge_trees")
        dtypes, bases = subject.current().dtypes, subject.bases()
        self.dtype: torch.dtype = getattr(torch, dtypes[dtype % len(dtypes)])
        self.base = bases[base % len(bases)]
        claimed = subject.current().head_dims
        self.dim = 2 if claimed is None else min(claimed)

    @rule(target=states, keys=KEYS)
    def attend(self, keys: list[Key]) -> Any:
        """The state over some new keys, or over none."""
        return keys, trees.rounded(self._unsplit(keys), self.dtype, subject.device())

    @rule(target=states, a=states, b=states)
    def merge(self, a: Any, b: Any) -> Any:
        """Two states merged; their keys are counted once each, the same keys twice count twice."""
        return self._checked("merge_state", a[0] + b[0], lambda: trees.merged(a[1], b[1], self.base))

    @rule(target=states, a=states, b=states)
    def merge_in_place(self, a: Any, b: Any) -> Any:
        """The same in place."""
        operation = "merge_state_in_place"
        return self._checked(operation, a[0] + b[0], lambda: trees.merged(a[1], b[1], self.base, operation))

    @rule(target=states, parts=st.lists(states, min_size=1, max_size=5))
    def merge_all(self, parts: list[Any]) -> Any:
        """Several states at once."""
        keys = [key for part in parts for key in part[0]]
        return self._checked("merge_states", keys, lambda: trees.all_merged([part[1] for part in parts], self.base))

    def teardown(self) -> None:
        """After the last draw of an example, where it may be the last example."""
        deadline.check()

    def _checked(self, operation: str, keys: list[Key], merged: Any) -> Any:
        if not subject.offers(operation) or len(keys) > 64:
            return multiple()
        state = merged()
        inputs = {"v": state.v, "s": state.s}
        trees.assert_tracked(operation, state, self._unsplit(keys), inputs, self.base)
        return keys, state

    def _unsplit(self, keys: list[Key]) -> Exact:
        values = [[value[d % len(value)] for d in range(self.dim)] for _, value in keys]
        return attention([score for score, _ in keys], values, self.base, dim=self.dim)


@law(2)
class TestMergeTrees(MergeTrees.TestCase):  # type: ignore[valid-type,misc]
    """Any sequence of merges of any key sets stays within the composed bound of unsplit attention."""

    def runTest(self) -> None:  # noqa: N802  # unittest's name
        """One that is cut short has passed: unittest would take TimeIsUp, as all that is raised, for an error."""
        with contextlib.suppress(deadline.TimeIsUp):
            super().runTest()
