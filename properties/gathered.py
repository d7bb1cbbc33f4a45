"""What all processes of a run have told: outcomes, counts, findings. The controller gathers it, one property at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from properties import table
from properties.laws import LAWS
from properties.record import Record

Told = dict[str, Any]


@dataclass
class Gathered:
    """One entry of `told` per property (or set of its parameters): law, property, outcome, seconds, reason, finding."""

    record: Record = field(default_factory=Record)
    told: list[Told] = field(default_factory=list)

    def add(self, told: Told) -> None:
        """Takes what a process tells of one property."""
        self.record.add(Record.from_plain(told.pop("record")))
        self.told.append(told)

    @property
    def outcomes(self) -> table.Outcomes:
        """Counts of passed, failed, known and skipped, by law."""
        counts: table.Outcomes = {}
        for one in self.told:
            counts.setdefault(one["law"], Counter())[one["outcome"]] += 1
        return counts

    @property
    def by_name(self) -> dict[str, str]:
        """The outcome of each property."""
        return {one["property"]: one["outcome"] for one in self.told}

    @property
    def skips(self) -> Counter[str]:
        """How many properties were not asked, by reason."""
        return Counter(one["reason"] for one in self.told if one["outcome"] == "skipped")

    def not_checked(self, implementation: str) -> Counter[str]:
        """The same, with all that `implementation` does not claim in one."""
        counts: Counter[str] = Counter()
        for reason, count in self.skips.items():
            counts["not claimed" if reason.startswith(f"{implementation} ") else reason] += count
        return counts

    def findings(self, outcome: str) -> list[Told]:
        """What the properties of that outcome, "failed" or "known", found: law by law, the plainest input first."""
        found = [one["finding"] for one in self.told if one["outcome"] == outcome and one["finding"]]
        return sorted(found, key=lambda one: (one["law"], not one["python"], len(one["python"]), one["property"]))

    def as_plain(self, implementation: str) -> Told:
        """The laws, the worst ratios, what was not asked of `implementation` and what was found."""
        laws = []
        outcomes = self.outcomes
        for number, words in LAWS.items():
            counts = outcomes.get(number, Counter())
            laws.append(
                {
                    "law": number,
                    "words": words,
                    "verdict": table.verdict(counts),
                    "examples": self.record.examples[number],
                    "seconds": round(sum(one["seconds"] for one in self.told if one["law"] == number), 2),
                    "worst": {output: self._worst(number, output) for output in ("v", "s")},
                    "properties": [
                        {key: one[key] for key in ("property", "outcome", "seconds", "reason")}
                        for one in self.told
                        if one["law"] == number
                    ],
                }
            )
        worst = [
            {"law": law, "operation": operation, "dtype": dtype, "output": output, "ratio": ratio}
            for (law, operation, dtype, output), ratio in sorted(self.record.worst.items())
        ]
        return {
            "laws": laws,
            "worst": worst,
            "regimes": dict(sorted(self.record.regimes.items())),
            "not_checked": dict(self.not_checked(implementation).most_common()),
            "broken": self.findings("failed"),
            "known_failures": self.findings("known"),
        }

    def _worst(self, law: int, output: str) -> float | None:
        ratios = [
            ratio for (number, _, _, which), ratio in self.record.worst.items() if (number, which) == (law, output)
        ]
        return max(ratios, default=None)
