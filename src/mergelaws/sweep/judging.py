"""Judging rows in bulk: error over bound in float64 on their device, and by mpmath where float64 cannot decide."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from mergelaws.implementation import Implementation
from mergelaws.sweep.rows import Rows, State
from oracles import bounds, exact
from oracles.ratio import ratio
from oracles.screen import GUARD, chain_errors, evaluate
from properties.claimed import arithmetic_of, as_meant

MOST_WRONG = 8  # rows of a batch that are told

Evaluate = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Finding:
    """One row: its states in hex, the error over bound of v and of s; v of the column that is worst."""

    operation: str
    dtype: str
    base: int | str
    v: tuple[str, ...]
    s: tuple[str, ...]
    v_ratio: float
    s_ratio: float

    @property
    def ratio(self) -> float:
        """The larger one."""
        return max(self.v_ratio, self.s_ratio)


@dataclass
class Verdict:
    """What a batch came to.

    highest: its row with the highest ratio of v, and of s. over: how many rows are over the bound; wrong: the first of
    them. settled: how many went to mpmath because float64 could not decide.
    """

    highest: dict[str, Finding] = field(default_factory=dict)
    wrong: list[Finding] = field(default_factory=list)
    over: int = 0
    settled: int = 0


def ratios_of(
    rows: Rows, out: State, implementation: Implementation, compiled: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Error over bound of v, the largest of a row, and of s; float64 [R] each. inf where a class is wrong.

    compiled: by one kernel for rows of this shape, which takes seconds to make and saves the way through memory.
    """
    arithmetic = arithmetic_of(implementation, rows.base)
    errors = torch.tensor(chain_errors(rows.s.shape[1], arithmetic), dtype=torch.float64, device=rows.v.device)
    given = rows.v, as_meant(rows.s, implementation), *out, errors, rows.dtype, rows.base, arithmetic.log_error
    of_v, of_s = _evaluator(compiled)(*given)
    if implementation.nan_lse == "any":  # nothing is claimed of such a row
        unclaimed = rows.s.isnan().any(dim=1)
        of_v, of_s = of_v.masked_fill(unclaimed, 0.0), of_s.masked_fill(unclaimed, 0.0)
    return of_v, of_s


def judge(rows: Rows, out: State, implementation: Implementation, compiled: bool = False) -> Verdict:
    """Holds every row to the bound; `out` is (v [R, D], s [R]). compiled: see `ratios_of`."""
    v_ratio, s_ratio = ratios_of(rows, out, implementation, compiled)
    worst = torch.maximum(v_ratio, s_ratio)
    near = (worst - 1.0).abs() <= GUARD
    at = torch.stack([v_ratio.argmax(), s_ratio.argmax(), near.sum(), (worst > 1.0 + GUARD).sum()])
    at_v, at_s, undecided, over = at.tolist()  # one wait for the device
    verdict = Verdict(over=over)
    close = near.nonzero()[:, 0].tolist() if undecided else []
    wrong = (worst > 1.0 + GUARD).nonzero()[:MOST_WRONG, 0].tolist() if over else []
    settled = {row: settle(rows, out, row, implementation) for row in {*close, *wrong, at_v, at_s}}
    verdict.settled = len(close)
    verdict.highest = {"v": settled[at_v], "s": settled[at_s]}
    verdict.over += sum(settled[row].ratio > 1.0 for row in close)
    verdict.wrong = [settled[row] for row in (*wrong, *close) if settled[row].ratio > 1.0][:MOST_WRONG]
    return verdict


def settle(rows: Rows, out: State, row: int, implementation: Implementation) -> Finding:
    """One row, by its number, judged by mpmath."""
    arithmetic = arithmetic_of(implementation, rows.base)
    v, s = rows.v[row].double().tolist(), as_meant(rows.s[row], implementation).double().tolist()
    dim = rows.v.shape[2]
    right, allowed = exact.merge(v, s, rows.base, dim=dim), bounds.local(v, s, rows.dtype, arithmetic, dim=dim)
    of_v, of_s = ratio(right, allowed, out[0][row].double().tolist(), float(out[1][row]))
    if implementation.nan_lse == "any" and bool(rows.s[row].isnan().any()):
        of_v, of_s = [0.0] * dim, 0.0  # as `ratios_of` has it
    column = of_v.index(max(of_v))
    values = tuple(float(state[column]).hex() for state in v)
    sums = tuple(x.hex() for x in rows.s[row].double().tolist())
    return Finding(rows.operation, rows.dtype, rows.base, values, sums, of_v[column], of_s)


def _rows_only(
    v: Any, s: Any, v_out: Any, s_out: Any, errors: Any, dtype: str, base: int | str, log_error: float
) -> Any:
    of_v, of_s = evaluate(v.double(), s.double(), v_out.double(), s_out.double(), errors, dtype, base, log_error)
    return of_v.amax(dim=1), of_s


@functools.cache
def _evaluator(compiled: bool) -> Evaluate:
    return torch.compile(_rows_only, dynamic=False, fullgraph=True) if compiled else _rows_only
