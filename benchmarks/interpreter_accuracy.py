"""How accurate NumPy's float32 exponentials and logarithms are, which Triton's interpreter uses for tl.exp2 and the like.

Every float32 of the ranges that a merge uses is tried, against float64.

    python -m benchmarks.interpreter_accuracy            prints a table; a few minutes

The figures stand in docs/numerics.md. They hold for one NumPy on one kind of processor, for NumPy has several
implementations of these functions and picks one at run time.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

U = 2.0**-24
CHUNK = 1 << 20

Values = NDArray[Any]  # one-dimensional, float32 or float64


@dataclass(frozen=True)
class Range:
    """A function on all float32 from `low` to `high`, of one sign; the error is taken relative to `scale` of the value."""

    function: Callable[[Values], Values]
    low: float
    high: float
    relative_to: str  # "value": relative error; "one": absolute error; "one + value": the form that the bound uses

    @property
    def name(self) -> str:
        """The function and the range."""
        return f"{self.function.__name__} on [{self.low:g}, {self.high:g}]"

    def bits(self) -> range:
        """The bit patterns of the magnitudes."""
        ends = sorted(int(numpy.float32(abs(x)).view(numpy.uint32)) for x in (self.low, self.high))
        return range(ends[0], ends[1] + 1)

    def arguments(self) -> Iterator[Values]:
        """All float32 of the range, by chunks."""
        patterns = self.bits()
        for first in range(patterns.start, patterns.stop, CHUNK):
            magnitudes = numpy.arange(first, min(first + CHUNK, patterns.stop), dtype=numpy.uint32).view(numpy.float32)
            yield -magnitudes if self.high <= 0 else magnitudes

    def errors(self, x: Values) -> Values:
        """The errors at x, in units of 2^-24."""
        right = self.function(x.astype(numpy.float64))
        scale = {"value": numpy.abs(right), "one": numpy.ones_like(right), "one + value": 1 + right}[self.relative_to]
        off = numpy.abs(self.function(x).astype(numpy.float64) - right)
        return numpy.divide(off, scale, out=numpy.zeros_like(off), where=off > 0) / U


RANGES = (
    Range(numpy.exp2, -126.0, 0.0, "value"),
    Range(numpy.exp, -87.0, 0.0, "value"),
    Range(numpy.log2, 1.0, 2.0, "one"),
    Range(numpy.log2, 2.0, 65536.0, "value"),
    Range(numpy.log2, 1.0, 65536.0, "one + value"),
    Range(numpy.log, 1.0, 65536.0, "one + value"),
)


def main() -> None:
    """Tries all ranges and prints the worst error of each."""
    console = Console()
    table = Table("function", "values tried", "relative to", "worst / 2^-24", "at")
    with Progress(console=console) as progress:
        for interval in RANGES:
            task = progress.add_task(interval.name, total=len(interval.bits()))
            worst, at = 0.0, 0.0
            for x in interval.arguments():
                errors = interval.errors(x)
                where = int(errors.argmax())
                if errors[where] > worst:
                    worst, at = float(errors[where]), float(x[where])
                progress.advance(task, len(x))
            count = f"{len(interval.bits()):,}"
            table.add_row(interval.name, count, interval.relative_to, f"{worst:.3f}", f"{at:.9g}")
    console.print(table)
    console.print(f"NumPy {numpy.__version__}, {platform.machine()}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
