"""An attention state as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mergelaws import arguments, base, operations
from mergelaws.backend import DEVICE_TYPE


@dataclass(frozen=True, eq=False)
class AttentionState:
    """The state (v, s) of S queries and H heads over some set of keys.

    v: the normalised attention output, [S, H, D], float16, bfloat16 or float32. s: the log-sum-exp of the scores in base
    2, float32 [S, H]; -inf where there were no keys. States over disjoint key sets form a commutative monoid: `a + b` is
    the state over the keys of both, `AttentionState.empty` its identity.

    Raises TypeError or ValueError as the operations do if v and s are not such tensors.
    """

    v: torch.Tensor
    s: torch.Tensor

    def __post_init__(self) -> None:
        arguments.check_v("v", self.v, "[S, H, D]")
        arguments.check_s("s", self.s, "v", self.v)

    @classmethod
    def empty(
        cls,
        rows: int,
        heads: int,
        dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = DEVICE_TYPE,
    ) -> AttentionState:
        """The state of no keys, (0, -inf), for S = rows, H = heads, D = dim."""
        v = torch.zeros(rows, heads, dim, dtype=dtype, device=device)
        s = torch.full((rows, heads), -torch.inf, dtype=torch.float32, device=device)
        return cls(v, s)

    @classmethod
    def from_natural(cls, v: torch.Tensor, lse: torch.Tensor) -> AttentionState:
        """The state whose LSE is given as a natural logarithm, float32 [S, H]."""
        return cls(v, base.to_base2(lse))

    @classmethod
    def merged(cls, states: Sequence[AttentionState]) -> AttentionState:
        """The state over the keys of all of `states`, in one pass. Raises ValueError if there are none."""
        if not states:
            raise ValueError("states is empty; it must hold at least one AttentionState, since it gives the shape")
        v, s = operations.merge_states(
            torch.stack([state.v for state in states], dim=1), torch.stack([state.s for state in states], dim=1)
        )
        return cls(v, s)

    def merge(self, other: AttentionState) -> AttentionState:
        """The state over the keys of both."""
        return AttentionState(*operations.merge_state(self.v, self.s, other.v, other.s))

    def __add__(self, other: AttentionState) -> AttentionState:
        return self.merge(other) if isinstance(other, AttentionState) else NotImplemented

    def lse(self, lse_base: int | str = 2) -> torch.Tensor:
        """The log-sum-exp in base 2 or "e", float32 [S, H]. Raises ValueError for another base."""
        return base.to_natural(self.s) if arguments.natural_base(lse_base) else self.s
