"""What the kernels of this project promise beyond the laws: regimes of one tree, and no overflow on the way."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mergelaws
from mergelaws.kernels import dense, kept, tuning
from properties import subject
from properties.broken import bits
from properties.cases import States


@pytest.mark.parametrize("count", [1, 16, 17, 33, 200, 600])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_chunks_shared_among_programs_give_the_bits_of_one_program(
    count: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of summation is a function of N alone, whether chunks are shared or not, dense or ragged."""
    v, s = States(dtype, 2, 2, 3, 5, count, "some empty", "cancelling", "nan", seed=count).tensors()
    results = []
    for shared in (True, False):
        monkeypatch.setattr(dense, "shares_chunks", lambda lanes, states, shared=shared: shared)
        kept.forget()
        results.append(mergelaws.merge_states(v, s))
    indptr = torch.arange(3, device=v.device) * count
    flat = v.reshape(2 * count, 3, 5), s.reshape(2 * count, 3)
    results.append(mergelaws.variable_length_merge_states(*flat, indptr))
    for other in results[1:]:
        assert torch.equal(bits(other[0]), bits(results[0][0]))
        assert torch.equal(bits(other[1]), bits(results[0][1]))


@given(count=st.integers(1, 10**6))
def test_a_chunk_is_a_power_of_two_and_leaves_few_of_them(count: int) -> None:
    """At least 16 states, and no more chunks than a chunk has states."""
    chunk = tuning.chunk_of(count)
    assert chunk >= 16
    assert chunk & (chunk - 1) == 0
    assert -(-count // chunk) <= chunk


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_two_states_at_the_limit_of_the_dtype_do_not_overflow(dtype: torch.dtype) -> None:
    """The weights are divided by their sum before v is touched, so the largest v is merged with itself, and with its negative."""
    most = torch.full((1, 1, 4), torch.finfo(dtype).max, dtype=dtype, device=subject.device())
    s = torch.zeros(1, 1, device=subject.device())
    assert torch.equal(mergelaws.merge_state(most, s, most, s)[0], most)
    assert torch.equal(mergelaws.merge_state(most, s, -most, s)[0], torch.zeros_like(most))


def test_an_attention_state_is_a_monoid() -> None:
    """`+`, `merged`, `empty` and `lse` of AttentionState are the operations."""
    v, s = States("float32", 2, 2, 3, 4, 3, "near", "ordinary", seed=1).tensors()
    a, b, c = (mergelaws.AttentionState(v[:, i], s[:, i]) for i in range(3))
    two = a + b
    assert torch.equal(bits(two.v), bits(mergelaws.merge_state(a.v, a.s, b.v, b.s)[0]))
    three = mergelaws.AttentionState.merged([a, b, c])
    assert torch.equal(bits(three.s), bits(mergelaws.merge_states(v, s)[1]))
    same = a + mergelaws.AttentionState.empty(2, 3, 4, device=subject.device())
    assert torch.equal(bits(same.v), bits(a.v))
    assert torch.equal(same.lse(), a.s)
    assert torch.equal(same.lse("e"), mergelaws.to_natural(a.s))
    back = mergelaws.AttentionState.from_natural(a.v, a.lse("e"))
    assert float((back.s - a.s).abs().max()) <= 2 * float(torch.finfo(torch.float32).eps) * float(a.s.abs().max())
    with pytest.raises(ValueError, match="states is empty"):
        mergelaws.AttentionState.merged([])
    with pytest.raises(ValueError, match="lse_base is 10; it must be 2 or 'e'"):
        a.lse(10)
