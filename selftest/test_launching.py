"""Launching straight from what Triton compiled is launching, and offsets past 32 bits are right on memory that is there."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
import torch

import mergelaws
from mergelaws.implementation import OPERATIONS
from mergelaws.kernels import dense, kept, launching, segments, two_states
from properties import call
from properties.broken import bits
from properties.cases import States

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: compiled kernels")

State = tuple[torch.Tensor, torch.Tensor]


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_both_ways_to_launch_give_the_same_bits(operation: str, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The public way, the direct one, and the public one without overlap; v aligned and not; few states and many."""
    for count in (2,) if operation in call.TWO_STATES else (2, 40, 300):
        v, s = States("float16", 2, 3, 2, 64, count, "wide", "ordinary", "zero", seed=count).tensors()
        moved = torch.empty(v.numel() + shift, dtype=v.dtype, device=v.device)[shift:].view(v.shape)
        moved.copy_(v)
        results = []
        for known, overlapped in ((launching.ENTRY_POINT_IS_KNOWN, True), (False, True), (False, False)):
            monkeypatch.setattr(launching, "ENTRY_POINT_IS_KNOWN", known)
            if not overlapped:
                for module in (dense, segments, two_states):
                    monkeypatch.setattr(module, "overlaps_on", lambda device: False)
            kept.forget()
            results += [call.merge(operation, moved, s) for _ in range(2)]
            assert kept.is_anything() == known
            monkeypatch.undo()
        kept.forget()
        for other in results[1:]:
            assert torch.equal(bits(other[0]), bits(results[0][0]))
            assert torch.equal(bits(other[1]), bits(results[0][1]))


@pytest.fixture
def memory_to_spare() -> Iterator[None]:
    """Gives the memory back to the device afterwards: other processes of the run need it."""
    yield
    gc.collect()
    torch.cuda.empty_cache()


@needs_gpu
@pytest.mark.gpu
@pytest.mark.usefixtures("memory_to_spare")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("power", [31, 32])
def test_offsets_past_the_32_bit_range_on_real_memory(operation: str, power: int) -> None:
    """v of more than 2^31 and 2^32 elements: the last rows, and those around the limit, are as computed from a copy."""
    heads, dim, count = 8, 128, 2 if operation in call.TWO_STATES else 4
    rows = 2**power // (heads * dim * (1 if operation in call.TWO_STATES else count)) + 8
    if torch.cuda.mem_get_info()[0] < 7 * 2**power:  # in bytes: three and a half tensors
        pytest.skip("needs the memory of a larger GPU, or one that is free")
    last = torch.arange(rows - 16, rows, device="cuda")
    v, s = States("float16", 2, 16, heads, dim, count, "near", "ordinary", "zero", seed=9).tensors()
    if operation in call.TWO_STATES:
        large_v = [torch.zeros(rows, heads, dim, dtype=v.dtype, device="cuda") for _ in range(2)]
        large_s = [torch.zeros(rows, heads, device="cuda") for _ in range(2)]
        for i in range(2):
            large_v[i][last], large_s[i][last] = v[:, i], s[:, i]
        pairs = (large_v[0], large_s[0], large_v[1], large_s[1])
        merge: Callable[..., State | None] = getattr(mergelaws, operation)
        out = merge(*pairs) or (large_v[0], large_s[0])
    else:
        many_v = torch.zeros(rows, count, heads, dim, dtype=v.dtype, device="cuda")
        many_s = torch.zeros(rows, count, heads, device="cuda")
        many_v[last], many_s[last] = v, s
        if operation == "merge_states":
            out = mergelaws.merge_states(many_v, many_s)
        else:
            flat = many_v.view(rows * count, heads, dim), many_s.view(rows * count, heads)
            out = mergelaws.variable_length_merge_states(*flat, torch.arange(rows + 1, device="cuda") * count)
    wanted = call.merge(operation, v, s)
    assert torch.equal(bits(out[0][last]), bits(wanted[0]))
    assert torch.equal(bits(out[1][last]), bits(wanted[1]))
    assert not bool(out[0][0].any())
