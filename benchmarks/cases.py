"""The shapes that benchmarks/merge.py times, and their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

ITEM = {"float16": 2, "bfloat16": 2, "float32": 4}  # bytes
RAGGED = "variable_length_merge_states"

State = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One shape: `states` is N for merge_states, 2 for merge_state, and (length, how many of it) for segments."""

    operation: str
    rows: int
    heads: int
    dim: int
    dtype: str
    states: int | tuple[tuple[int, int], ...] = 2

    @property
    def name(self) -> str:
        """Such as merge_states 2048x8x32x128 float16."""
        if isinstance(self.states, tuple):
            lengths = " + ".join(f"{many} of {length}" for length, many in self.states)
            return f"{self.operation} {lengths}, {self.heads}x{self.dim} {self.dtype}"
        count = "" if self.operation == "merge_state" else f"{self.states}x"
        return f"{self.operation} {self.rows}x{count}{self.heads}x{self.dim} {self.dtype}"

    @property
    def items(self) -> int:
        """States in all, over all positions."""
        if isinstance(self.states, tuple):
            return sum(length * many for length, many in self.states)
        return self.rows * self.states

    @property
    def bytes(self) -> int:
        """What has to move: every input read once, every output written once."""
        row = self.heads * (self.dim * ITEM[self.dtype] + 4)
        return row * (self.items + self.rows)

    @property
    def shape(self) -> dict[str, Any]:
        """S, N, H and D."""
        states = self.states if isinstance(self.states, int) else [list(pair) for pair in self.states]
        return {"S": self.rows, "N": states, "H": self.heads, "D": self.dim}


def _two(rows: int, heads: int, dim: int, dtype: str = "float16") -> Case:
    return Case("merge_state", rows, heads, dim, dtype)


def _many(rows: int, states: int, heads: int, dim: int, dtype: str = "float16") -> Case:
    return Case("merge_states", rows, heads, dim, dtype, states)


def _ragged(heads: int, dim: int, *lengths: tuple[int, int]) -> Case:
    return Case(RAGGED, sum(many for _, many in lengths), heads, dim, "float16", lengths)


CASES = (
    _two(16384, 32, 128),
    _two(16384, 32, 128, "bfloat16"),
    _two(8192, 32, 128, "float32"),
    _two(2048, 32, 128),
    _two(512, 32, 128),
    _two(64, 32, 128),
    _two(1, 32, 128),
    _two(16384, 16, 64),
    _two(4096, 16, 256),
    _two(4096, 16, 512),
    _two(4096, 128, 128),
    _two(16384, 8, 128),
    _two(8192, 32, 96),
    _two(8192, 16, 192),
    _two(2048, 32, 576),
    _many(2048, 8, 32, 128),
    _many(2048, 8, 32, 128, "bfloat16"),
    _many(2048, 8, 32, 128, "float32"),
    _many(2048, 100, 32, 128),
    _many(2048, 2, 32, 128),
    _many(256, 8, 32, 128),
    _many(64, 8, 32, 128),
    _many(64, 16, 32, 128),
    _many(64, 64, 32, 128),
    _many(1, 8, 32, 128),
    _many(1, 64, 32, 128),
    _many(1, 512, 32, 128),
    _many(16, 512, 8, 128),
    _many(64, 512, 8, 128),
    _many(1, 4096, 32, 128),
    _many(2048, 8, 32, 64),
    _many(2048, 8, 16, 256),
    _many(2048, 8, 8, 512),
    _many(2048, 8, 128, 128),
    _many(2048, 8, 32, 96),
    _many(2048, 8, 16, 192),
    _many(512, 8, 32, 576),
    _ragged(32, 128, (8, 2048)),
    _ragged(32, 128, (8, 256)),
    _ragged(32, 128, (8, 64)),
    _ragged(32, 128, (1, 4096)),
    _ragged(32, 128, (4096, 1), (1, 4096)),
    _ragged(32, 128, (1, 1024), (8, 512), (64, 64), (512, 4)),
)

# Tiny ones, where the host's time is all there is.
HOST_CASES = (_two(1, 32, 128), _many(1, 8, 32, 128), _ragged(32, 128, (8, 4)))


@dataclass
class Inputs:
    """The tensors of one call: v [S, N, H, D] or ragged [nnz, H, D], s without D, and indptr [S + 1] where ragged."""

    case: Case
    v: torch.Tensor
    s: torch.Tensor
    indptr: torch.Tensor | None = None
    pair: tuple[torch.Tensor, ...] = ()

    @classmethod
    def draw(cls, case: Case, generator: torch.Generator) -> Inputs:
        """Standard normal v, and s spread over a few units, as splits of a sequence give them."""
        lead: tuple[int, ...] = (2, case.rows)
        if isinstance(case.states, tuple):
            lead = (case.items,)
        elif case.operation == "merge_states":
            lead = (case.rows, case.states)
        dtype = getattr(torch, case.dtype)
        v = torch.randn(*lead, case.heads, case.dim, dtype=dtype, device="cuda", generator=generator)
        s = torch.randn(*lead, case.heads, device="cuda", generator=generator) * 3.0
        if isinstance(case.states, tuple):
            counts = torch.cat([torch.full((many,), length) for length, many in case.states])
            ends = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
            return cls(case, v, s, ends.to("cuda", torch.int32))
        return cls(case, v, s, pair=(v[0], s[0], v[1], s[1]) if case.operation == "merge_state" else ())

    def states_of(self, position: int) -> State:
        """v [N, H, D] and s [N, H] of one position, in float64 on the host."""
        if self.indptr is not None:
            begin, end = self.indptr[position : position + 2].tolist()
            v, s = self.v[begin:end], self.s[begin:end]
        elif self.pair:
            v, s = self.v[:, position], self.s[:, position]
        else:
            v, s = self.v[position], self.s[position]
        return v.cpu().double(), s.cpu().double()
