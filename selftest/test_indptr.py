"""What the host remembers of indptr, and what a captured graph does with another one."""

from __future__ import annotations

import gc

import pytest
import torch

import mergelaws
from mergelaws import indptr as module
from properties import subject
from properties.broken import bits
from properties.cases import States

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: graphs")


def _states(items: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    v, s = States("float16", 2, 1, 2, 8, items, "wide", "ordinary", "zero", seed=seed).tensors()
    return v[0].contiguous(), s[0].contiguous()


def test_it_is_read_once_for_a_tensor_and_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers read it once; a write, another tensor, or a tensor at the same address read it again."""
    reads: list[torch.Size] = []
    read = module._read

    def noted(tensor: torch.Tensor) -> module.Ends:
        reads.append(tensor.shape)
        return read(tensor)

    monkeypatch.setattr(module, "_read", noted)
    v, s = _states(6)
    ends = torch.tensor([0, 2, 6], device=v.device)
    for _ in range(3):
        mergelaws.variable_length_merge_states(v, s, ends)
    assert len(reads) == 1
    ends[1] = 3
    mergelaws.variable_length_merge_states(v, s, ends)
    assert len(reads) == 2
    mergelaws.variable_length_merge_states(v, s, ends.view(-1))
    assert len(reads) == 3
    del ends
    gc.collect()
    mergelaws.variable_length_merge_states(v, s, torch.tensor([0, 2, 6], device=v.device))
    assert len(reads) == 4


def test_a_bad_one_is_refused_however_often_a_good_one_was_seen() -> None:
    """Written over, for fewer states, or in inference mode, where a tensor has no version."""
    v, s = _states(6)
    ends = torch.tensor([0, 2, 6], device=v.device)
    mergelaws.variable_length_merge_states(v, s, ends)
    with pytest.raises(ValueError, match="it must end at 5 or below"):
        mergelaws.variable_length_merge_states(v[:5], s[:5], ends)
    ends[1] = 7
    for _ in range(2):
        with pytest.raises(ValueError, match="indptr falls from 7 to 6 at entry 2"):
            mergelaws.variable_length_merge_states(v, s, ends)
    with torch.inference_mode():
        free = torch.tensor([0, 2, 6], device=v.device)
        mergelaws.variable_length_merge_states(v, s, free)
        free[0] = -1
        with pytest.raises(ValueError, match="indptr starts at -1"):
            mergelaws.variable_length_merge_states(v, s, free)


def test_what_is_known_of_it() -> None:
    """The last entry, the longest segment, and the chunks of all: of 16 states to 256, of 32 to 1024, and so on."""
    ends = torch.tensor([3, 3, 4, 20, 37, 297, 1400], device=subject.device())
    chunks = 1 + 1 + 2 + -(-260 // 32) + -(-1103 // 64)
    assert module.ends_of(ends, 1400) == (1400, 1103, chunks)


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("seen", [True, False], ids=["seen before", "not seen"])
def test_a_captured_graph_is_right_for_any_later_values(seen: bool) -> None:
    """Equal segments, one of all states among empty ones, a few long ones; a bad segment is (NaN, NaN), others are right."""
    items = 3000
    v, s = _states(items)
    ends = torch.arange(0, items + 1, 10, device=v.device)
    count = len(ends) - 1
    uneven = torch.full((count + 1,), items, device=v.device)
    uneven[0] = 0
    mergelaws.variable_length_merge_states(v, s, uneven)  # a kernel is not compiled while a graph is captured
    if seen:
        mergelaws.variable_length_merge_states(v, s, ends)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out_v, out_s = mergelaws.variable_length_merge_states(v, s, ends)
    few = torch.arange(count + 1, device=v.device) // 100 * 1000
    for values in (ends.clone(), uneven, few):
        ends.copy_(values)
        graph.replay()
        wanted = mergelaws.variable_length_merge_states(v, s, values)
        assert torch.equal(bits(out_v), bits(wanted[0]))
        assert torch.equal(bits(out_s), bits(wanted[1]))
    ends.copy_(few)
    ends[100] = items + 1  # ends one segment outside the list and begins another there
    graph.replay()
    bad = torch.zeros(count, dtype=torch.bool, device=v.device)
    bad[99:101] = True
    assert bool(out_v[bad].isnan().all() and out_s[bad].isnan().all())
    wanted = mergelaws.variable_length_merge_states(v, s, few)
    assert torch.equal(bits(out_v[~bad]), bits(wanted[0][~bad]))
    assert torch.equal(bits(out_s[~bad]), bits(wanted[1][~bad]))
