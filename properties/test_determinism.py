"""Law 19: the same inputs give the same bits, every run; on a GPU also in graphs, on other streams, and compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given

from mergelaws.implementation import OPERATIONS
from properties import call, subject
from properties.call import TWO_STATES
from properties.cases import Problem, States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.strategies import problems

State = tuple[torch.Tensor, torch.Tensor]
Run = Callable[[torch.Tensor, torch.Tensor], State]

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device: graphs, streams, compilation"
)


@law(19)
@given(problem=problems(rows=5, heads=4))
def test_the_same_inputs_give_the_same_bits(problem: Problem) -> None:
    """merge(x) = merge(x) three times over, with another problem in between."""
    v, s = problem.tensors()
    first = problem.merged(v, s)
    problem.merged(v.flip(0) + 1, s.flip(0) - 1)
    assert_within_bound(problem.operation, v, s, first, problem.base)
    for _ in range(2):
        again = problem.merged(v, s)
        if subject.claims("repeat"):
            assert_same_bits(problem.operation, "every run gives the same bits", again, first, {"v": v, "s": s})
        assert_within_bound(problem.operation, v, s, again, problem.base)


@law(19)
@given(problem=problems(rows=2, heads=2, dims=(1, 3, 8)))
def test_the_default_dtype_does_not_matter(problem: Problem) -> None:
    """With torch's default dtype float64 the operation returns the same dtypes and the same bits."""
    v, s = problem.tensors()
    plain = problem.merged(v, s)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        out = problem.merged(v, s)
    finally:
        torch.set_default_dtype(before)
    assert_within_bound(problem.operation, v, s, out, problem.base)
    if subject.claims("repeat"):
        assert_same_bits(problem.operation, "the default dtype changes no bit", out, plain, {"v": v, "s": s})


def _runner(operation: str) -> Run:
    """`operation` as a function of (v [S, N, H, D], s [S, N, H]) that calls the implementation and nothing else."""
    implementation, base = subject.current(), subject.bases()[0]
    keywords = {"lse_base": base} if implementation.lse_base == "either" else {}
    function = getattr(implementation, operation)

    def taken(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return call.as_taken(operation, name, tensor)

    def merge_states(v: torch.Tensor, s: torch.Tensor) -> State:
        return function(v, s, **keywords)  # type: ignore[no-any-return]

    def merge_state(v: torch.Tensor, s: torch.Tensor) -> State:
        two = taken("v_a", v[:, 0]), taken("s_a", s[:, 0]), taken("v_b", v[:, 1]), taken("s_b", s[:, 1])
        out_v, out_s = function(*two, **keywords)
        return out_v, call.turned(operation, "s", out_s)

    def merge_state_in_place(v: torch.Tensor, s: torch.Tensor) -> State:
        out_v, out_s = v[:, 0].clone(), taken("s", s[:, 0]).clone()
        function(out_v, out_s, taken("v_other", v[:, 1]), taken("s_other", s[:, 1]), None, **keywords)
        return out_v, call.turned(operation, "s", out_s)

    def variable_length_merge_states(v: torch.Tensor, s: torch.Tensor) -> State:
        rows, count, heads, dim = v.shape
        indptr = torch.arange(rows + 1, dtype=torch.int32, device=v.device) * count
        return function(v.reshape(rows * count, heads, dim), s.reshape(rows * count, heads), indptr, **keywords)  # type: ignore[no-any-return]

    runners = merge_state, merge_state_in_place, merge_states, variable_length_merge_states
    return next(runner for runner in runners if runner.__name__ == operation)


def _case(operation: str, seed: int) -> States:
    """Problems that differ by their seed alone, many states for the N-state operations."""
    count = 2 if operation in TWO_STATES else 70
    limit = subject.current().max_states
    count = count if limit is None else min(count, limit)
    dim = 64
    return States(subject.current().dtypes[0], subject.bases()[0], 33, 8, dim, count, "wide", "ordinary", "zero", seed)


def _required(operation: str) -> None:
    if not subject.offers(operation):
        pytest.skip(f"{subject.current().name} does not offer {operation}")


@law(19)
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_replayed_graph_follows_its_inputs(operation: str) -> None:
    """Captured in a CUDA graph and replayed with changed inputs, the operation gives the bits of a plain call on them."""
    _required(operation)
    run = _runner(operation)
    v, s = _case(operation, 1).tensors()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run(v, s)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run(v, s)
    for seed in (2, 3):
        new_v, new_s = _case(operation, seed).tensors()
        v.copy_(new_v)
        s.copy_(new_s)
        graph.replay()
        torch.cuda.synchronize()
        got = out[0].clone(), out[1].clone()
        wanted = call.merge(operation, new_v, new_s, subject.bases()[0])
        assert_same_bits(operation, "a replayed graph follows its inputs", got, wanted, {"v": new_v, "s": new_s})


@law(19)
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_side_stream_is_waited_on(operation: str) -> None:
    """On a side stream, behind a slow producer of its inputs, the operation sees what the producer wrote."""
    _required(operation)
    run = _runner(operation)
    new_v, new_s = _case(operation, 4).tensors()
    wanted = call.merge(operation, new_v, new_s, subject.bases()[0])
    v, s = torch.zeros_like(new_v), torch.zeros_like(new_s)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        v.copy_(new_v)
        s.copy_(new_s)
        out = run(v, s)
    stream.synchronize()
    assert_same_bits(operation, "a side stream is honoured", out, wanted, {"v": new_v, "s": new_s})


@law(19)
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("operation", OPERATIONS)
def test_compiled_code_gives_the_bits_of_eager_code(operation: str) -> None:
    """torch.compile(fullgraph=True) around the operation and a computation on its result changes no bit of the result."""
    _required(operation)
    if subject.current().name != "ours":
        pytest.skip("being traced by torch.compile is not a claim; only this project's operators are held to it")
    run = _runner(operation)
    v, s = _case(operation, 5).tensors()

    @torch.compile(fullgraph=True)
    def compiled(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        out_v, out_s = run(v, s)
        return out_v, out_s, out_s * 2.0

    out_v, out_s, doubled = compiled(v, s)
    wanted = call.merge(operation, v, s, subject.bases()[0])
    inputs = {"v": v, "s": s}
    assert_same_bits(operation, "compiled code gives the bits of eager code", (out_v, out_s), wanted, inputs)
    assert_same_bits(
        operation, "what follows it is compiled too", (out_v, doubled), (wanted[0], wanted[1] * 2.0), inputs
    )
