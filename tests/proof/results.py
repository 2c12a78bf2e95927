"""What a proof did and found, as it is kept: a file of JSON for each part, in one folder."""

import os
import platform
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

import lowkiq_lambda
from tests.kit.servers import Server

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "proof"
Part = TypeVar("Part", bound=msgspec.Struct)


class ProofScene(msgspec.Struct, frozen=True):
    """What was tested, and where."""

    version: str
    commit: str
    day: str
    server: str
    python: str
    system: str
    cores: int
    gigabytes: float


class ModelResult(msgspec.Struct, frozen=True):
    """All orders of steps within bounds; `fault`: the promise that one of them breaks.

    `depth`: the most steps that a state needs. `whole`: whether no state was left out as it needs more. `never_done`:
    actions of the model that no order has.
    """

    model: str
    bounds: str
    states: int
    ends: int
    seconds: float
    fault: str | None = None
    depth: int = 0
    whole: bool = True
    never_done: list[str] = []


class GuardResult(msgspec.Struct, frozen=True):
    """What the model finds once a guard is left out, and in how many steps."""

    model: str
    guard: str
    promise: str
    fault: str | None
    states: int
    steps: int


class ConformanceResult(msgspec.Struct, frozen=True):
    """Traces of the lease's model that were played to the real scripts, and the first that they did not go along with.

    `late` counts the calls whose answer found nobody.
    """

    seed: int
    traces: int
    steps: int
    calls: int
    late: int
    seconds: float
    wrong: str = ""


class Models(msgspec.Struct, frozen=True):
    """The part of the models."""

    results: list[ModelResult]
    guards: list[GuardResult]
    conformance: ConformanceResult | None = None


class Run(msgspec.Struct, frozen=True):
    """A run that is judged from outside: how often each thing was done, and each harm, and what broke a claim."""

    seed: int
    seconds: float
    done: dict[str, int]
    harm: dict[str, int]
    violations: list[str] = []


class ProofRuns(msgspec.Struct, frozen=True):
    """The part of the runs of one kind."""

    kind: str
    runs: list[Run]

    @property
    def done(self) -> dict[str, int]:
        """How often each thing was done in all of them."""
        return _sums(run.done for run in self.runs)

    @property
    def harm(self) -> dict[str, int]:
        """How often each harm was done in all of them."""
        return _sums(run.harm for run in self.runs)

    @property
    def seconds(self) -> float:
        """Of all of them."""
        return sum(run.seconds for run in self.runs)


class MutantResult(msgspec.Struct, frozen=True):
    """A fault that was planted into the engine, whether it was seen by what should see it, and after how long."""

    name: str
    seen_by: str
    is_seen: bool
    seconds: float


class Mutants(msgspec.Struct, frozen=True):
    """The part of the mutants."""

    results: list[MutantResult]


class ScoredMutant(msgspec.Struct, frozen=True):
    """A generated fault of a line, and what became of it.

    `outcome`: "found", "not found", "equivalent", or "not proved" where no run executes the line. `by`: the run that
    found it and what that said, or why it is equivalent. `seconds` until that was known.
    """

    file: str
    line: int
    change: str
    outcome: str
    seconds: float
    by: str = ""


class MutationScore(msgspec.Struct, frozen=True):
    """The part of the generated faults. `seed`: which were drawn, None for all of those files."""

    results: list[ScoredMutant]
    seed: int | None = None
    seconds: float = 0.0
    unproved: dict[str, list[int]] = {}
    """Lines that no run executes, by file."""

    def counts(self, file: str | None = None) -> dict[str, int]:
        """How many have each outcome, of that file or all."""
        return Counter(one.outcome for one in self.results if file in (None, one.file))

    def share(self, files: Collection[str]) -> float:
        """The share that was found, of the faults of these files that are not equivalent and in executed lines."""
        outcomes = [one.outcome for one in self.results if one.file in files]
        sought = outcomes.count("found") + outcomes.count("not found")
        return outcomes.count("found") / sought if sought else 1.0

    def beside(self, before: "MutationScore") -> "MutationScore":
        """With what an earlier proof made of other files."""
        files = {one.file for one in self.results} | self.unproved.keys()
        others = [one for one in before.results if one.file not in files]
        unproved = {file: lines for file, lines in before.unproved.items() if file not in files}
        return MutationScore(
            [*others, *self.results], self.seed, self.seconds + before.seconds, unproved | self.unproved
        )


def scene(day: str) -> ProofScene:
    """This checkout on this machine, today."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    with Server() as server:
        info = server.admin.info("server")
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info["redis_version"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return ProofScene(
        lowkiq_lambda.__version__,
        commit.stdout.strip() or "unknown",
        day,
        f"{name} {version}",
        platform.python_version(),
        platform.system(),
        os.cpu_count() or 1,
        round(memory),
    )


def keep(name: str, part: msgspec.Struct) -> None:
    """Write the part over the one of an earlier proof."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(part)) + b"\n")


def kept(name: str, kind: type[Part]) -> Part | None:
    """The part of that name, if a proof has made it."""
    path = FOLDER / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=kind) if path.exists() else None


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            sums[name] = sums.get(name, 0) + count
    return sums
