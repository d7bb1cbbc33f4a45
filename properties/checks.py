"""The two judgements that properties make: within the bound, and bit for bit.

Rows are screened in float64 and settled by mpmath: the worst row of every call, and every row that float64 cannot decide
(see oracles/screen.py). There is no tolerance but the bound of the very inputs, and no factor on it.
"""

from __future__ import annotations

import numpy
import torch

from oracles import bounds, exact
from oracles.bounds import Arithmetic, Bound
from oracles.exact import Exact
from oracles.ratio import ratio
from oracles.reading import exact_values
from oracles.screen import screen, undecided
from properties import record, subject
from properties.broken import Evidence, LawBroken, bits, spelled
from properties.claimed import arithmetic_of, as_meant

State = tuple[torch.Tensor, torch.Tensor]


def arithmetic(base: int | str) -> Arithmetic:
    """The arithmetic that the implementation under test claims, in `base`."""
    return arithmetic_of(subject.current(), base)


def assert_within_bound(operation: str, v: torch.Tensor, s: torch.Tensor, out: State, base: int | str = 2) -> None:
    """Every row of `out` (v [S, H, D], s [S, H]) is within the bound of the exact merge of the states that it was given.

    v [S, N, H, D] and s [S, N, H] are the inputs. Raises LawBroken with the worst row.
    """
    states_v, states_s = _rows_of_states(v), _rows_of_states(as_meant(s, subject.current())[..., None])[..., 0]
    out_v, out_s = exact_values(out[0]), exact_values(out[1])
    if out_s.size == 0:
        return
    out_v, out_s = out_v.reshape(-1, v.shape[-1]), out_s.reshape(-1)
    ratios = screen(states_v, states_s, out_v, out_s, name_of(v.dtype), arithmetic(base))
    worst = numpy.maximum(ratios.v.max(axis=1), ratios.s)
    for row in {int(worst.argmax()), *numpy.flatnonzero(undecided(ratios)).tolist()}:
        column = int(ratios.v[row].argmax())
        state_v, state_s = states_v[row, :, [column]].T, states_s[row]
        right = exact.merge(state_v.tolist(), state_s.tolist(), base, dim=1)
        allowed = bounds.local(state_v.tolist(), state_s.tolist(), name_of(v.dtype), arithmetic(base), dim=1)
        position, head = divmod(row, s.shape[2])
        inputs = {"v": v[position, :, head, column], "s": s[position, :, head]}
        where = f"position {position}, head {head}, column {column}"
        got = out[0][position, head, column], out[1][position, head]
        assert_row_within(operation, right, allowed, got, inputs, base, where)


def assert_row_within(
    operation: str,
    right: Exact,
    allowed: Bound,
    got: State,
    inputs: dict[str, torch.Tensor],
    base: int | str,
    where: str,
) -> None:
    """One row, v [D] and s [], is within the bound of its exact value; notes the ratios. Raises LawBroken."""
    v, s = got[0].reshape(-1), got[1].reshape(())
    v_ratios, s_ratio = ratio(right, allowed, exact_values(v).tolist(), float(s))
    dtype = name_of(v.dtype)
    v_ratio = max(v_ratios, default=0.0)
    record.ratio(operation, dtype, "v", v_ratio)
    record.ratio(operation, dtype, "s", s_ratio)
    worst = max(v_ratio, s_ratio)
    if worst <= 1.0:
        return
    output = "v" if v_ratio >= s_ratio else "s"
    column = v_ratios.index(v_ratio)
    expected = f"v = {_digits(right.v[column])}, s = {_digits(right.s)}"
    actual = f"v = {spelled(v[column])}\n            s = {spelled(s)}"
    lines = [
        f"{operation}, {dtype}, base {base}, {where}: the error of {output} is {worst:.4g} times its bound",
        *(f"  input     {name} = {spelled(tensor)}" for name, tensor in inputs.items()),
        f"  expected  {expected}",
        f"  actual    {actual}",
        f"  error     over bound: v {v_ratio:.4g}, s {s_ratio:.4g}",
    ]
    evidence = Evidence(operation, "within the bound", inputs, base, expected, actual, worst)
    raise LawBroken("\n".join(lines), evidence)


def assert_same_bits(operation: str, claim: str, got: State, wanted: State, inputs: dict[str, torch.Tensor]) -> None:
    """Both outputs have the same bits, NaN and -0.0 included. `claim` says what was compared. Raises LawBroken."""
    for output, mine, theirs in zip(("v", "s"), got, wanted, strict=True):
        _assert_same(operation, claim, output, mine, theirs, inputs)


def assert_same_v(
    operation: str, claim: str, got: torch.Tensor, wanted: torch.Tensor, inputs: dict[str, torch.Tensor]
) -> None:
    """As `assert_same_bits`, for v alone."""
    _assert_same(operation, claim, "v", got, wanted, inputs)


def _assert_same(
    operation: str,
    claim: str,
    output: str,
    got: torch.Tensor,
    wanted: torch.Tensor,
    inputs: dict[str, torch.Tensor],
) -> None:
    assert got.shape == wanted.shape, f"{claim}: shapes {tuple(got.shape)} and {tuple(wanted.shape)} are compared"
    different = bits(got) != bits(wanted)
    if not bool(different.any()):
        return
    first = tuple(int(index) for index in different.nonzero()[0])
    dtype, count = name_of(inputs[next(iter(inputs))].dtype), int(different.sum())
    lines = [
        f"{operation}, {dtype}: {claim}, but {count} of {different.numel()} elements of {output} differ, the first at {list(first)}",
        *(f"  input     {name} = {spelled(tensor)}" for name, tensor in inputs.items()),
        f"  expected  {output} = {spelled(wanted[first])}",
        f"  actual    {output} = {spelled(got[first])}",
    ]
    evidence = Evidence(operation, claim, inputs, expected=spelled(wanted[first]), actual=spelled(got[first]))
    raise LawBroken("\n".join(lines), evidence)


def _rows_of_states(tensor: torch.Tensor) -> numpy.typing.NDArray[numpy.float64]:
    """[S, N, H, D] as [S * H, N, D] in float64."""
    values = numpy.moveaxis(exact_values(tensor), 1, 2)
    rows: numpy.typing.NDArray[numpy.float64] = values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])
    return rows


def name_of(dtype: torch.dtype) -> str:
    """The dtype as the claims name it."""
    return str(dtype).removeprefix("torch.")


def _digits(value: object) -> str:
    return f"{float(value):.10g}"  # type: ignore[arg-type]
