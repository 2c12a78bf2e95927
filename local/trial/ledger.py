"""The checker of the trial: it knows what was accepted, and reads what was done, and nothing of the library."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """What became of the payloads of all ids."""

    done: int = 0
    lost: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    repeats: int = 0
    releases: Counter[int] = field(default_factory=Counter)
    """How many payloads each package did."""

    @property
    def is_good(self) -> bool:
        """Whether all promises held; repeats are allowed."""
        return not (self.lost or self.out_of_order or self.overlaps)


def judged(accepted: Mapping[str, int], rows: Iterable[str]) -> Verdict:
    """The verdict on a ledger, where payloads 1, 2, 3 to the number of each id were accepted."""
    verdict = Verdict()
    highest: dict[str, int] = {}
    open_runs: dict[str, set[str]] = {}
    overtaken: dict[str, str] = {}
    for text in rows:
        what, id, run, *more = json.loads(text)
        if what == "end":
            open_runs[id].discard(run)
            # A run that another one overtook was alive, and no leftover of a dead process.
            if run in overtaken:
                verdict.overlaps.append(overtaken[run])
            continue
        numbers, release = more
        overtaken |= dict.fromkeys(open_runs.get(id, ()), f"{id}: {numbers}")
        open_runs.setdefault(id, set()).add(run)
        verdict.releases[release] += len(numbers)
        for number in numbers:
            before = highest.get(id, 0)
            verdict.repeats += number <= before
            if number > before + 1:
                verdict.out_of_order.append(f"{id}: {number} after {before}")
            highest[id] = max(before, number)
    verdict.done = sum(highest.values())
    verdict.lost = [
        f"{id}: {highest.get(id, 0)} of {last}" for id, last in accepted.items() if highest.get(id, 0) < last
    ]
    return verdict
