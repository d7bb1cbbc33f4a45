"""How fast the merges are on this GPU, beside other implementations and a device copy of the same bytes.

    python -m benchmarks.merge                 everything: prints a table, writes docs/performance.{json,md} and its plot
    python -m benchmarks.merge --only 64x16    the cases whose name contains 64x16, printed and not written
    python -m benchmarks.merge --document      the page and the plot anew from docs/performance.json

Every call of a case goes to inputs and outputs of its own, several times the L2 in all. The calls of one implementation
are captured in a CUDA graph, and the graphs of all implementations are replayed in turn, so that what the GPU does
meanwhile meets all alike. A time is the median over the rounds; its spread is half the distance of the 10th and 90th
percentiles. Before it is timed, a result is held to the bound of docs/numerics.md. Nothing is asserted on time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks import document
from benchmarks.cases import CASES, HOST_CASES, Case, Inputs
from benchmarks.peers import ALONE, OURS, Peer, in_place_calls, peers
from oracles.bounds import Arithmetic
from oracles.screen import screen

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "performance.json"
ROUNDS = 11
MOST_CALLS = 100  # in one graph
FEW_CALLS = 3  # of a slow implementation
LEAST_GRAPH_TIME = 300e-6  # seconds of work, at 4 TB/s, that a graph has at least
CACHES = 4  # times the L2 that the inputs fill
CHECKED = 6  # positions of a result that are held to the bound
MOST_CHECKED = 1 << 19  # elements of a position, all heads of which are

State = tuple[torch.Tensor, torch.Tensor]
Call = Callable[[], Any]


def within_bound(inputs: Inputs, result: State) -> float:
    """The largest error over bound among CHECKED positions spread over the result; above 1 is wrong.

    Of positions with very many states, the first and the last head.
    """
    rows, worst = inputs.case.rows, 0.0
    for position in sorted({i * (rows - 1) // max(1, CHECKED - 1) for i in range(CHECKED)}):
        v, s = inputs.states_of(position)
        heads = slice(None) if v.numel() < MOST_CHECKED else slice(None, None, v.shape[1] - 1)
        ratios = screen(
            v[:, heads].movedim(0, 1).numpy(),
            s[:, heads].movedim(0, 1).numpy(),
            result[0][position, heads].double().cpu().numpy(),
            result[1][position, heads].double().cpu().numpy(),
            inputs.case.dtype,
            Arithmetic(),
        )
        worst = max(worst, float(ratios.v.max()), float(ratios.s.max()))
    return worst


@contextlib.contextmanager
def _side_stream() -> Iterator[None]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


def _graph_of(calls: list[Call]) -> torch.cuda.CUDAGraph:
    with _side_stream():
        for call in calls:  # on all inputs, as a first step before a graph is captured: indptr is known then
            call()
    torch.cuda.synchronize()
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for call in calls:
            kept.append(call())  # outputs of their own: an output that is written again would stay in the L2
    return graph


def _seconds(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3


def _copy_calls(case: Case, sets: int, count: int) -> list[Call]:
    """Copies that read half of the case's bytes and write half."""

    def pair() -> State:
        source = torch.randint(0, 255, (max(1, case.bytes // 2),), dtype=torch.uint8, device="cuda")
        return torch.empty_like(source), source

    pairs = [pair() for _ in range(sets)]
    return [lambda to=to, source=source: to.copy_(source) for to, source in (pairs[i % sets] for i in range(count))]


def measure(case: Case, candidates: list[Peer]) -> dict[str, Any]:
    """The row of a case: for each implementation its median seconds a call, their spread, and its error over bound."""
    generator = torch.Generator(device="cuda").manual_seed(1)
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = int(min(MOST_CALLS, max(2, -(-CACHES * cache // case.bytes))))
    count = int(min(MOST_CALLS, max(sets, LEAST_GRAPH_TIME * 4e12 // case.bytes + 1)))
    inputs = [Inputs.draw(case, generator) for _ in range(sets)]
    times: dict[str, dict[str, float]] = {}
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
    for peer in candidates:
        run = peer.run(case)
        if run is None:
            continue
        of = min(count, FEW_CALLS) if peer.slow(case) else count
        with peer.around():
            worst = within_bound(inputs[-1], run(inputs[-1]))
            graphs[peer.name] = _graph_of([lambda x=inputs[i % sets], run=run: run(x) for i in range(of)]), of
        times[peer.name] = {"error over bound": worst}
        if not worst <= 1.0:
            print(f"{case.name}: {peer.name} is {worst:.3g} times the bound off", file=sys.stderr)
    graphs["device copy"] = _graph_of(_copy_calls(case, sets, count)), count
    times["device copy"] = {}
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS + 1):
        for name, (graph, calls) in graphs.items():
            samples[name].append(_seconds(graph) / calls)
    for name, seconds in samples.items():
        kept = sorted(seconds[1:])  # the first round warms up
        tenths = statistics.quantiles(kept, n=10)
        times[name] |= {"seconds": statistics.median(kept), "spread": (tenths[-1] - tenths[0]) / 2}
    del graphs, inputs
    gc.collect()
    torch.cuda.empty_cache()
    return {
        "operation": case.operation, "name": case.name, "dtype": case.dtype, "shape": case.shape, "bytes": case.bytes,
        "input sets": sets, "calls in a graph": count, "times": times,
    }  # fmt: skip


def host_times(candidates: list[Peer]) -> dict[str, dict[str, float]]:
    """Seconds of host time for one public call on a tiny problem, checks included, by operation and implementation."""
    table: dict[str, dict[str, float]] = {}
    for case in HOST_CASES:
        inputs = Inputs.draw(case, torch.Generator(device="cuda").manual_seed(1))
        calls: dict[str, Call] = {}
        for peer in candidates:
            run = peer.run(case) if peer.name != ALONE and not peer.slow(case) else None
            if run is not None:
                calls[peer.name] = lambda run=run, inputs=inputs: run(inputs)
        table[case.operation] = _host_seconds(calls)
        if inputs.pair:
            table["merge_state_in_place"] = _host_seconds(in_place_calls(inputs))
    return table


def _host_seconds(calls: dict[str, Call]) -> dict[str, float]:
    """The medians over batches of 50 calls, in turn, with the queue of launches empty at the start of each."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(60):
        for name, call in calls.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(50):
                call()
            samples[name].append((time.perf_counter() - begin) / 50)
    torch.cuda.synchronize()
    return {name: statistics.median(seconds[10:]) for name, seconds in samples.items()}


def main() -> int:
    """Runs the benchmark; 0 if it ran and every result was within its bound, 1 if one was not, 2 without a CUDA device."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merge", description="Times the merges on this GPU.")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases whose name contains TEXT; writes nothing"
    )
    parser.add_argument(
        "--document", action="store_true", help="only writes the page and the plot anew from the figures"
    )
    options = parser.parse_args()
    if options.document:
        document.write(json.loads(PAGE.read_text()), PAGE)
        return 0
    if not torch.cuda.is_available():
        print("There is no CUDA device here, so there is nothing to time. docs/performance.md has the last figures.")
        return 2
    candidates = peers()
    if not any(peer.name.startswith("flashinfer") for peer in candidates):
        print("flashinfer is not installed, so it is left out; `pip install flashinfer-python` brings it in.")
    figures: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": importlib.metadata.version("triton"),
        "implementations": [*(peer.name for peer in candidates), "device copy"],
        "rounds": ROUNDS,
        "host": host_times(candidates),
        "rows": [],
    }
    for operation, seconds in figures["host"].items():
        print(f"host time of {operation}: " + ", ".join(f"{name} {s * 1e6:.1f} us" for name, s in seconds.items()))
    for case in CASES:
        if options.only not in case.name:
            continue
        figures["rows"].append(measure(case, candidates))
        print(document.line(figures["rows"][-1]), flush=True)
        if not options.only:
            PAGE.write_text(json.dumps(figures, indent=1) + "\n")  # a run that is cut short leaves what it has
    if not options.only:
        document.write(figures, PAGE)
    rows = figures["rows"]
    return 0 if all(row["times"][OURS]["error over bound"] <= 1.0 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
