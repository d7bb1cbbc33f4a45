"""Fuzzing the interface: random calls in processes of their own, which may neither crash nor hang, nor answer unclearly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_BATCH = 2000  # calls of one process: starting one takes seconds
_POLL = 0.2  # seconds
CALLER = ("-m", "mergelaws.random_calls")


@dataclass
class Fuzz:
    """What came of the calls: counts of results and refusals, and (number, what was wrong) of the others."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return self.counts.total()


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    first: int
    stop: int
    mark: Path
    at: int = -1
    since: float = field(default_factory=time.monotonic)


def run(
    calls: int,
    seed: int,
    processes: int,
    patience: float = 30.0,
    tell: Callable[[Fuzz], object] = lambda _: None,
    caller: tuple[str, ...] = CALLER,
) -> Fuzz:
    """Makes the calls 0..calls-1 of `seed`, in so many processes at a time; a call may take `patience` seconds.

    A call that ends its process or hangs is a fault, and the calls after it are made by another process. caller: the
    Python program that makes them, given the arguments of `mergelaws.random_calls`.
    """
    fuzz = Fuzz(seed)
    waiting = [(first, min(first + _BATCH, calls)) for first in range(0, calls, _BATCH)][::-1]
    with tempfile.TemporaryDirectory(prefix="mergelaws-") as directory:
        running: list[_Worker] = []
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(_start(caller, seed, *waiting.pop(), Path(directory)))
            time.sleep(_POLL)
            for worker in list(running):
                fault = _fault_of(worker, patience)
                if worker.process.poll() is None:
                    continue
                running.remove(worker)
                told, _ = worker.process.communicate()
                if not fault and worker.process.returncode == 0:
                    report = json.loads(told.splitlines()[-1])
                    fuzz.counts.update(report["counts"])
                    fuzz.faults += [(number, words) for number, words in report["faults"]]
                else:  # the calls before it came back, and are not counted again
                    at = max(worker.at, worker.first)
                    fuzz.counts.update({"came back": at - worker.first, "fault": 1})
                    fuzz.faults.append((at, fault or f"ended the process with {worker.process.returncode}"))
                    if at + 1 < worker.stop:
                        waiting.append((at + 1, worker.stop))
                tell(fuzz)
    return fuzz


def _start(caller: tuple[str, ...], seed: int, first: int, stop: int, directory: Path) -> _Worker:
    mark = directory / f"{first}"
    numbers = [str(seed), str(first), str(stop)]
    command = [sys.executable, "-W", "ignore", *caller, *numbers, str(mark)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)  # noqa: S603
    return _Worker(process, first, stop, mark)


def _fault_of(worker: _Worker, patience: float) -> str:
    """What is wrong with a process that does not come on, which is then ended; "" if nothing is. Notes where it is."""
    at = int(worker.mark.read_text() or -1) if worker.mark.is_file() else -1
    if at != worker.at:
        worker.at, worker.since = at, time.monotonic()
    starting = at < 0  # importing takes a while
    if time.monotonic() - worker.since < patience * (4 if starting else 1) or worker.process.poll() is not None:
        return ""
    worker.process.kill()
    worker.process.wait()
    return f"did not come back in {patience:g} s"
