"""Law 18: any number of states, heads, columns and rows, none included, and offsets past 2^31 and 2^32 elements."""

from __future__ import annotations

import math

import pytest
import torch

from mergelaws.implementation import OPERATIONS
from properties import call, subject
from properties.call import MANY_STATES, TWO_STATES
from properties.cases import States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law

HEADS = (1, 64, 65, 96, 97, 128, 200)
DIMS = (1, 3, 8, 24, 64, 80, 96, 112, 128, 160, 192, 256, 512, 576)
COUNTS = (1, 2, 3, 31, 32, 33, 48, 100)

State = tuple[torch.Tensor, torch.Tensor]


def _claimed(operation: str, *, heads: int = 1, dim: int = 1, count: int = 2, sizes: tuple[int, ...] = ()) -> None:
    """Skips what the implementation does not claim to take."""
    claims = subject.current()
    if not subject.offers(operation):
        pytest.skip(f"{claims.name} does not offer {operation}")
    for claim, limit, size in (("H", claims.max_heads, heads), ("N", claims.max_states, count)):
        if limit is not None and size > limit:
            pytest.skip(f"{claims.name} claims {claim} up to {limit}")
    if claims.head_dims is not None and dim not in claims.head_dims:
        pytest.skip(f"{claims.name} claims D in {claims.head_dims}")
    if 0 in sizes and not claims.zero_sizes:
        pytest.skip(f"{claims.name} does not claim sizes of zero")


def _dtype() -> str:
    claimed = subject.current().dtypes
    return "bfloat16" if "bfloat16" in claimed else claimed[0]


def _states(rows: int, heads: int, dim: int, count: int) -> States:
    return States(_dtype(), subject.bases()[0], rows, heads, dim, count, "wide", "ordinary", "seven", seed=7)


@law(18)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("heads", HEADS)
def test_any_number_of_heads(operation: str, heads: int) -> None:
    """H from 1 to 200, with D = 64 and 512: within the bound, and each head as computed on its own."""
    for dim in (64, 512):
        _claimed(operation, heads=heads, dim=dim)
        case = _states(2, heads, dim, 2)
        v, s = case.tensors()
        out = call.merge(operation, v, s, case.base)
        assert_within_bound(operation, v, s, out, case.base)
        last = call.merge(operation, v[:, :, -1:].contiguous(), s[:, :, -1:].contiguous(), case.base)
        if subject.claims("batch"):
            kept = out[0][:, -1:].contiguous(), out[1][:, -1:].contiguous()
            assert_same_bits(operation, "the last head is as computed alone", kept, last, {"v": v, "s": s})


@law(18)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dim", DIMS)
def test_any_head_size(operation: str, dim: int) -> None:
    """D from 1 to 576, powers of two and others, inside guard zones."""
    _claimed(operation, heads=3, dim=dim)
    for dtype in subject.current().dtypes:
        case = States(dtype, subject.bases()[-1], 3, 3, dim, 2, "near", "ordinary", "zero", seed=dim)
        v, s = case.tensors()
        assert_within_bound(operation, v, s, call.merge(operation, v, s, case.base), case.base)


@law(18)
@pytest.mark.parametrize("operation", MANY_STATES)
@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_states(operation: str, count: int) -> None:
    """N from 1 to 100, s from equal to huge: every state counts once, the last as much as the first."""
    dim = 64 if subject.current().head_dims else 8
    _claimed(operation, count=count, heads=2, dim=dim)
    for regime in ("equal", "near", "some empty", "huge"):
        case = States(_dtype(), subject.bases()[0], 2, 2, dim, count, regime, "ordinary", "seven", seed=count)
        v, s = case.tensors()
        assert_within_bound(operation, v, s, call.merge(operation, v, s, case.base), case.base)


@law(18)
@pytest.mark.parametrize("operation", MANY_STATES)
def test_four_thousand_states(operation: str) -> None:
    """N = 4096, some of them empty: every state counts once."""
    dim = 64 if subject.current().head_dims else 4
    _claimed(operation, count=4096, dim=dim)
    case = States(_dtype(), subject.bases()[0], 2, 1, dim, 4096, "some empty", "ordinary", "seven", seed=1)
    v, s = case.tensors()
    assert_within_bound(operation, v, s, call.merge(operation, v, s, case.base), case.base)


@law(18)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("rows", (65535, 65536, 65537))
def test_more_rows_than_a_grid_dimension(operation: str, rows: int) -> None:
    """S around 65,536: within the bound, and the last rows as computed on their own."""
    dim = 64 if subject.current().head_dims else 2
    _claimed(operation, dim=dim)
    case = States(_dtype(), subject.bases()[0], rows, 1, dim, 2, "near", "ordinary", "zero", seed=3)
    v, s = case.tensors()
    out = call.merge(operation, v, s, case.base)
    assert_within_bound(operation, v, s, out, case.base)
    if subject.claims("batch"):
        last = call.merge(operation, v[-3:].contiguous(), s[-3:].contiguous(), case.base)
        assert_same_bits(
            operation,
            "the last rows are as computed alone",
            (out[0][-3:], out[1][-3:]),
            last,
            {"v": v[-3:], "s": s[-3:]},
        )


@law(18)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("sizes", ((0, 2, 3), (2, 2, 0), (0, 2, 0), (2, 0, 3), (0, 0, 3)), ids=str)
def test_nothing_gives_nothing(operation: str, sizes: tuple[int, int, int]) -> None:
    """S, N or H of zero: outputs of the right shape, (0, -inf) where N = 0, and the next call works."""
    rows, count, heads = sizes
    if operation in TWO_STATES and count == 0:
        pytest.skip("two states are two")
    dim = 64 if subject.current().head_dims else 5
    _claimed(operation, dim=dim, sizes=sizes)
    dtype = getattr(torch, _dtype())
    v = torch.ones(rows, count, heads, dim, dtype=dtype, device=subject.device())
    s = torch.ones(rows, count, heads, device=subject.device())
    out_v, out_s = call.merge(operation, v, s, subject.bases()[0])
    if count == 0:
        nothing = torch.zeros_like(out_v), torch.full_like(out_s, -math.inf)
        assert_same_bits(operation, "no states give (0, -inf)", (out_v, out_s), nothing, {"v": v, "s": s})
    case = _states(2, 2, dim, 2)
    v, s = case.tensors()
    assert_within_bound(operation, v, s, call.merge(operation, v, s, case.base), case.base)


@law(18, "variable_length_merge_states")
def test_empty_segments_are_empty_states() -> None:
    """indptr = [0, 0, 3, 3, 5]: (0, -inf) for segments 0 and 2, the others as merge_states; indptr = [0]: no rows."""
    dim = 64 if subject.current().head_dims else 5
    _claimed("variable_length_merge_states", dim=dim, heads=2, count=3)
    case = States(_dtype(), subject.bases()[0], 1, 2, dim, 5, "near", "ordinary", "zero", seed=5)
    v, s = case.tensors()
    indptr = torch.tensor([0, 0, 3, 3, 5], dtype=torch.int32, device=v.device)
    out_v, out_s = call.variable_length_merge_states(v[0], s[0], indptr, case.base)
    empty = torch.zeros_like(out_v[::2]), torch.full_like(out_s[::2], -math.inf)
    operation = "variable_length_merge_states"
    assert_same_bits(operation, "empty segments give (0, -inf)", (out_v[::2], out_s[::2]), empty, {"v": v, "s": s})
    for row, (begin, end) in ((1, (0, 3)), (3, (3, 5))):
        out = out_v[row : row + 1], out_s[row : row + 1]
        assert_within_bound(operation, v[:, begin:end], s[:, begin:end], out, case.base)
    if subject.current().zero_sizes:
        none_v, none_s = call.variable_length_merge_states(v[0], s[0], indptr[:1], case.base)
        assert none_v.shape == (0, 2, dim) and none_s.shape == (0, 2)


@law(18)
@pytest.mark.parametrize("operation", ("merge_state", "merge_states"))
@pytest.mark.parametrize("power", (31, 32))
def test_offsets_past_the_32_bit_range(operation: str, power: int) -> None:
    """A view whose rows lie 2^31 or 2^32 elements apart: the last rows are as computed from a copy of them."""
    dim = 64 if subject.current().head_dims else 8
    _claimed(operation, heads=2, dim=dim)
    if not subject.current().strided:
        pytest.skip(f"{subject.current().name} does not claim to take strided tensors")
    far = far_apart(power, dim)
    v, s = States(_dtype(), subject.bases()[0], 3, 2, dim, 2, "near", "ordinary", "zero", seed=9).tensors()
    far.copy_(v)
    kwargs = {"lse_base": subject.bases()[0]} if subject.current().lse_base == "either" else {}
    run = getattr(subject.current(), operation)
    s_a, s_b = (call.as_taken(operation, "s", s[:, side]) for side in (0, 1))
    tensors = (far, s) if operation == "merge_states" else (far[:, 0], s_a, far[:, 1], s_b)
    out_v, out_s = run(*tensors, **kwargs)
    out = out_v, call.turned(operation, "s", out_s)
    wanted = call.merge(operation, v, s, subject.bases()[0])
    assert_within_bound(operation, v, s, out, subject.bases()[0])
    if subject.claims("layout"):
        assert_same_bits(operation, "far rows are as computed from a copy", out, wanted, {"v": v, "s": s})


def far_apart(power: int, dim: int) -> torch.Tensor:
    """A 16-bit v [3, 2, 2, D] with its rows 2^(power - 1) elements apart; the memory between them is never touched."""
    stride = 2 ** (power - 1)
    elements = 2 * stride + 4 * dim
    memory = torch.empty(elements, dtype=getattr(torch, _dtype()), device=subject.device())
    return memory.as_strided((3, 2, 2, dim), (stride, 2 * dim, dim, 1))
