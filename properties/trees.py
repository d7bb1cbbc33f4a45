"""Merging in any order: trees of two-state merges, with the exact state and the composed bound carried along.

The local bound of every merge comes from the very bits that it was given, what it inherits from the exact states of its
two inputs and the bounds on their errors (docs/numerics.md, composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from oracles import bounds, exact
from oracles.bounds import Bound
from oracles.exact import Exact
from oracles.precision import context
from oracles.reading import exact_values
from properties import call
from properties.checks import arithmetic, assert_row_within, name_of


@dataclass(frozen=True)
class Tracked:
    """One row's state as computed, v [1, 1, D] and s [1, 1], what it should be, and how far off it may be."""

    v: torch.Tensor
    s: torch.Tensor
    exact: Exact
    error: Bound


def given(v: torch.Tensor, s: torch.Tensor, base: int | str) -> Tracked:
    """A state that is right by definition: v [1, 1, D], s [1, 1] as they are."""
    itself = exact.merge([_numbers(v)], [float(s)], base)
    zero = context().zero
    return Tracked(v, s, itself, Bound((zero,) * len(itself.v), zero))


def rounded(state: Exact, dtype: torch.dtype, device: str) -> Tracked:
    """An exact state, stored: v in `dtype`, s in float32."""
    v = torch.tensor([[[float(x) for x in state.v]]], dtype=torch.float64).to(dtype)
    s = torch.tensor([[float(state.s)]], dtype=torch.float32)
    return Tracked(v.to(device), s.to(device), state, bounds.rounded(state, name_of(dtype)))


def merged(a: Tracked, b: Tracked, base: int | str, operation: str = "merge_state") -> Tracked:
    """The implementation's merge of two tracked states."""
    v, s = torch.stack([a.v, b.v], dim=1), torch.stack([a.s, b.s], dim=1)
    out_v, out_s = call.merge(operation, v, s, base)
    return Tracked(out_v, out_s, *_expected([a, b], base))


def all_merged(states: Sequence[Tracked], base: int | str, operation: str = "merge_states") -> Tracked:
    """The implementation's merge of all states at once."""
    v, s = torch.stack([state.v for state in states], dim=1), torch.stack([state.s for state in states], dim=1)
    out_v, out_s = call.merge(operation, v, s, base)
    return Tracked(out_v, out_s, *_expected(states, base))


def tree(states: Sequence[Tracked], picks: Sequence[int], base: int | str, operation: str = "merge_state") -> Tracked:
    """All states merged two by two. `picks`, used again and again, say which two of those left are merged next."""
    left = list(states)
    step = 0
    while len(left) > 1:
        a = left.pop(picks[step % len(picks)] % len(left))
        b = left.pop(picks[(step + 1) % len(picks)] % len(left))
        left.append(merged(a, b, base, operation))
        step += 2
    return left[0]


def assert_tracked(
    operation: str, state: Tracked, right: Exact, inputs: dict[str, torch.Tensor], base: int | str
) -> None:
    """The computed state is within its composed bound of `right`. Raises LawBroken."""
    assert_row_within(operation, right, state.error, (state.v, state.s), inputs, base, "after all merges")


def _expected(states: Sequence[Tracked], base: int | str) -> tuple[Exact, Bound]:
    exacts = [state.exact for state in states]
    right = exact.merge([state.v for state in exacts], [state.s for state in exacts], base)
    v, s = [_numbers(state.v) for state in states], [float(state.s) for state in states]
    local = bounds.local(v, s, name_of(states[0].v.dtype), arithmetic(base))
    return right, bounds.add(bounds.inherited(exacts, [state.error for state in states], base), local)


def _numbers(v: torch.Tensor) -> list[float]:
    return [float(x) for x in exact_values(v).reshape(-1)]
