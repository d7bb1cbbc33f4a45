"""Every regime of the kernels is reached, and gives the same row the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import mergelaws
from mergelaws.kernels import dense, kept, launching, plans, segments, tuning, two_states
from properties.broken import bits
from properties.cases import States

State = tuple[torch.Tensor, torch.Tensor]
Seen = set[tuple[str, int, bool]]
DIM = 16


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """The kernels that were launched, with their VEC and WIDE."""
    found: Seen = set()
    run = launching.Launch.run

    def noted(launch: launching.Launch, *arguments: Any) -> None:
        name = launch.kernel.fn.__name__ if hasattr(launch.kernel, "fn") else launch.kernel.__name__
        found.add((name, launch.constants["VEC"], launch.constants["WIDE"]))
        run(launch, *arguments)

    monkeypatch.setattr(launching.Launch, "run", noted)
    kept.forget()
    yield found
    kept.forget()


def _copy_at(v: torch.Tensor, shift: int) -> torch.Tensor:
    """A contiguous copy that starts `shift` elements behind a multiple of 16 bytes."""
    buffer = torch.empty(v.numel() + shift, dtype=v.dtype, device=v.device)
    copy = buffer[shift:].view(v.shape)
    copy.copy_(v)
    return copy


def _layouts(v: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same values with vectors of every width, and with strides of their own."""
    yield from (_copy_at(v, shift) for shift in (0, 1, 2, 4))
    yield v.transpose(0, -2).contiguous().transpose(0, -2)
    yield v.repeat_interleave(2, dim=-1)[..., ::2]


def _assert_same(results: list[State]) -> None:
    for v, s in results[1:]:
        assert torch.equal(bits(v), bits(results[0][0]))
        assert torch.equal(bits(s), bits(results[0][1]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("count", [3, 17, 70, 300])
def test_n_states(count: int, dtype: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole rows and shared chunks; segments alone and dealt out; narrow and wide offsets; vectors of every width."""
    v, s = States(dtype, 2, 2, 3, DIM, count, "some empty", "cancelling", "nan", seed=count).tensors()
    indptr = torch.arange(3, device=v.device) * count
    slots = 2 * -(-count // tuning.LEAST_CHUNK)
    monkeypatch.setattr(segments, "longest_alone", lambda lanes: tuning.LEAST_CHUNK)
    results = []
    for wide, split in ((False, False), (True, True), (False, True), (True, False)):
        monkeypatch.setattr(dense, "is_wide", lambda *tensors, elements=0, wide=wide: wide)
        monkeypatch.setattr(segments, "is_wide", lambda *tensors, elements=0, wide=wide: wide)
        monkeypatch.setattr(dense, "shares_chunks", lambda lanes, states, split=split: split)
        monkeypatch.setattr(plans, "segment_kind", lambda *about, split=split: (4, slots if split else 0))
        for layout in _layouts(v) if wide == split and count < 100 else (v,):
            kept.forget()
            results.append(mergelaws.merge_states(layout, s))
            if layout.is_contiguous():
                flat = layout.view(2 * count, 3, DIM), s.view(2 * count, 3)
                results.append(mergelaws.variable_length_merge_states(*flat, indptr))
    _assert_same(results)
    names = {name for name, _, _ in seen}
    assert names == {
        "whole_rows_kernel", "one_chunk_kernel", "add_parts_kernel",
        "short_segments_kernel", "long_segment_chunks_kernel", "add_long_segments_kernel",
    }  # fmt: skip
    for name in names:
        assert {wide for kernel, _, wide in seen if kernel == name} == {False, True}
    if count < 100:
        assert {vec for kernel, vec, _ in seen if kernel == "short_segments_kernel"} == _widths(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_two_states(dtype: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of place and in place, masked or not, narrow and wide offsets, contiguous or not, vectors of every width."""
    v, s = States(dtype, 2, 4, 3, DIM, 2, "some empty", "cancelling", "nan", seed=2).tensors()
    results = []
    for wide in (False, True):
        monkeypatch.setattr(two_states, "is_wide", lambda *tensors, wide=wide: wide)
        for layout in _layouts(v):
            v_a, v_b, s_a, s_b = layout[:, 0], layout[:, 1], s[:, 0], s[:, 1]
            if layout.is_contiguous():
                shift = int(layout.storage_offset()) % 8
                v_a, v_b = _copy_at(v_a, shift), _copy_at(v_b, shift)
            kept.forget()
            results.append(mergelaws.merge_state(v_a, s_a, v_b, s_b))
            for mask in (None, torch.ones(4, dtype=torch.bool, device=v.device)):
                out_v, out_s = v_a.clone(), s_a.clone()
                mergelaws.merge_state_in_place(out_v, out_s, v_b, s_b, mask)
                results.append((out_v, out_s))
    _assert_same(results)
    assert {wide for _, _, wide in seen} == {False, True}
    assert {vec for _, vec, _ in seen} == _widths(dtype)


def _widths(dtype: str) -> set[int]:
    return {1, 2, 4} if dtype == "float32" else {1, 2, 4, 8}


def test_segments_have_no_more_chunks_than_slots() -> None:
    """A segment that is dealt out has at most N // 8 chunks, or N // 28 if it has more than 256 states."""
    for count in range(17, 70000):
        chunks = -(-count // tuning.chunk_of(count))
        assert chunks <= count // (8 if count <= 256 else 28), count


def test_a_batch_a_tile_and_a_kind_are_what_kernels_take() -> None:
    """Powers of two, whatever the shape; and no slots where no segment is too long for one program."""
    for states in (0, 1, 3, 16, 17, 100, 4096):
        for tile in (tuning.whole_tile(4096, 8, states), tuning.shared_tile(4096, 8, tuning.chunk_of(states))):
            assert all(number & (number - 1) == 0 for number in (tile.lanes, tile.vec))
    for lanes in (64, 10**6):
        alone = tuning.longest_alone(lanes)
        assert tuning.segment_kind(lanes, 100, 10**5, alone, 10**4)[1] == 0
        assert tuning.segment_kind(lanes, 100, 10**5, alone + 1, 10)[1] == 16
        assert tuning.segment_kind(lanes, 100, 10**5, 65, None)[1] == tuning.most_chunks(lanes, 10**5)
        assert tuning.segment_kind(lanes, 100, 10**5, 64, None)[1] == 0
        assert tuning.segment_kind(lanes, 1, 16, 16, None)[1] == 0
