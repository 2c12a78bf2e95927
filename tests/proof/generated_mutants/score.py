"""Which of the generated faults the runs find: each fault is looked for by those runs that execute its line."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import count, islice
from time import monotonic
from typing import Final, TypeAlias

from redis import RedisError

from lowkiq_lambda import LowkiqError
from tests.kit.servers import Server
from tests.models.conforming import LONGEST, Conforming, random_trace, tells_token
from tests.models.lease import LeaseWorld
from tests.proof.generated_mutants.equivalent import equivalents
from tests.proof.generated_mutants.features import WORKLOADS
from tests.proof.generated_mutants.linkers import ChangedScripts, ExecutedLine, countable, executed
from tests.proof.generated_mutants.machines import MACHINES, ModelledWorld
from tests.proof.generated_mutants.places import LuaMutant, mutants_of
from tests.proof.generated_mutants.world import ShardWorld
from tests.proof.results import MutationScore, ScoredMutant

AIMED: Final = tuple(
    f"include/{name}"
    for name in ("lease", "turn", "claim", "claim_beside", "recover", "put", "put_back", "outcomes", "flight", "let_go")
)
"""The files that carry what is promised of a lease and of the order."""
OTHERS: Final = (
    *(f"drain/{name}" for name in ("acquire", "settle", "checkpoint", "renew", "start", "release_dead")),
    *(f"include/{name}" for name in ("shard", "records", "payloads", "retry_counts", "wait", "trouble", "suspicion")),
    *(f"include/{name}" for name in ("suspects", "started", "claim_reply", "put_payloads", "join_payloads")),
    *(f"include/{name}" for name in ("dead_heads", "put_latest", "take_fairly", "serve", "lanes", "mark_items")),
    *(f"include/{name}" for name in ("headers", "new_headers", "new_items", "end_items")),
    "push/enqueue",
)
"""Others that the same runs go through."""
FILES: Final = (*AIMED, *OTHERS)
OF_THE_MODEL: Final = ("include/lease", "include/turn", "include/let_go", "drain/acquire", "drain/settle")
"""Files that the model of the lease has, too."""
TRACES: Final = 60
SEEDS: Final = 12
"""Runs of each workload."""
SEEDS_OF_MACHINES: Final = 2
"""Runs of each machine, which take a hundred times as long."""
MOST_RUNS: Final = 60
"""Runs that look for one fault."""
LONGER: Final = 2
"""So many times as many look for one that was not found before."""
Tell: TypeAlias = Callable[[int, int, ScoredMutant | None], object]
"""Told how many are tried, of how many, and the last one."""
Runs: TypeAlias = Mapping[ExecutedLine, Sequence[tuple[str, int]]]
"""The runs that execute a line: workloads and seeds."""


class Worlds:
    """One world for each workload and machine, on one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.by_name: dict[str, ShardWorld | ModelledWorld] = {
            **{workload.name: ShardWorld(server, workload) for workload in WORKLOADS},
            **{name: ModelledWorld(server, machine) for name, machine in MACHINES.items()},
        }

    def close(self) -> None:
        """Close their connections."""
        for world in self.by_name.values():
            world.close()

    def runs(self, changed: ChangedScripts, times: int) -> tuple[Runs, list[str]]:
        """Which lines each run executes, so many times as usual; and what is wrong with the scripts as they are."""
        runs, wrong = defaultdict[ExecutedLine, list[tuple[str, int]]](list), list[str]()
        with changed.counting():
            for name, world in self.by_name.items():
                for seed in range(times * (SEEDS_OF_MACHINES if name in MACHINES else SEEDS)):
                    executed(self.server.admin)
                    wrong += [f"{name} {seed}: {words}" for words in world.play(seed)]
                    for line in executed(self.server.admin):
                        runs[line].append((name, seed))
        return runs, wrong

    def finds(self, runs: Iterable[tuple[str, int]]) -> str:
        """What the first of these runs says that finds something wrong, or nothing."""
        for name, seed in runs:
            if words := self.by_name[name].play(seed):
                self._end_loops()
                return f"{name} {seed}: {words[0]}"
        return ""

    def leaves_the_model(self) -> str:
        """What the first trace of the lease's model says that the scripts do not go along with, or nothing."""
        for seed, trace in traces():
            conforming = Conforming(self.server.url, self.server.admin, f"trace-{seed}")
            try:
                conforming.play(trace)
            except (AssertionError, LowkiqError, RedisError) as wrong:
                return f"trace {seed} of the model: {wrong}"
            finally:
                conforming.close()
        return ""

    def _end_loops(self) -> None:
        """A script with a fault may never end, and nothing but a death of the server ends it then."""
        try:
            self.server.admin.ping()
        except RedisError:
            self.server.kill()
            self.server.start()


@cache
def traces() -> list[tuple[int, list[tuple[str, LeaseWorld]]]]:
    """Some of the model's, by their seeds; and two in which tokens make a difference, which are rare."""
    made = ((seed, random_trace(random.Random(seed), LONGEST)) for seed in count())
    return [*islice(made, TRACES), *islice(((seed, trace) for seed, trace in made if tells_token(trace)), 2)]


def lines_of(mutants: Sequence[LuaMutant]) -> dict[LuaMutant, ExecutedLine]:
    """The line that is counted for each of them: the last one at or above it."""
    counted = {file: sorted(countable(file)) for file in {mutant.file for mutant in mutants}}
    return {
        mutant: next(
            (line for line in reversed(counted[mutant.file]) if line.line <= mutant.line), ExecutedLine(mutant.file, 0)
        )
        for mutant in mutants
    }


def drawn(files: Sequence[str], most: int | None, seed: int) -> list[LuaMutant]:
    """The faults of these files, or so many of them by the seed."""
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    return mutants if most is None else sorted(random.Random(seed).sample(mutants, min(most, len(mutants))))


def prove_score(
    files: Sequence[str], most: int | None, seed: int, tell: Tell, before: MutationScore | None = None
) -> MutationScore:
    """Plant the faults of these files, or so many of them as the seed draws.

    `before`: those that were found then are not planted again, and the others are looked for longer. Raises
    AssertionError if a run finds something wrong with the scripts as they are.
    """
    began = monotonic()
    results = [one for one in before.results if one.outcome == "found"] if before else []
    places = {(one.file, one.line, one.change) for one in results}
    mutants = [one for one in drawn(files, most, seed) if (one.file, one.line, one.change) not in places]
    tell(0, len(mutants), None)
    with Server() as server, ChangedScripts() as changed, closing(Worlds(server)) as worlds:
        times = LONGER if before else 1
        runs, wrong = worlds.runs(changed, times)
        assert not wrong, wrong
        for number, one in enumerate(_scored(worlds, changed, mutants, runs, times * MOST_RUNS), 1):
            results.append(one)
            tell(number, len(mutants), one)
    unproved = {file: sorted(line.line for line in countable(file) - runs.keys()) for file in files}
    drew = None if most is None else seed
    return MutationScore(results, drew, monotonic() - began, {file: lines for file, lines in unproved.items() if lines})


def _scored(
    worlds: Worlds, changed: ChangedScripts, mutants: Sequence[LuaMutant], runs: Runs, most: int
) -> Iterator[ScoredMutant]:
    """Each with what became of it."""
    lines, known = lines_of(mutants), equivalents()
    for mutant in mutants:
        began, by, outcome = monotonic(), "", "not proved"
        if mutant.key in known:
            outcome, by = "equivalent", known[mutant.key]
        elif executing := runs.get(lines[mutant]):
            with changed.fault(mutant):
                by = worlds.finds(_spread(executing)[:most])
                if not by and mutant.file in OF_THE_MODEL:
                    by = worlds.leaves_the_model()
            outcome = "found" if by else "not found"
        yield ScoredMutant(mutant.file, mutant.line, mutant.change, outcome, monotonic() - began, by)


def _spread(runs: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """One of each workload first, so that a fault of any feature is found soon; then machines, as they are slow."""
    seen: dict[str, int] = defaultdict(int)
    ranked = []
    for name, seed in runs:
        ranked.append((seen[name], name in MACHINES, name, seed))
        seen[name] += 1
    return [(name, seed) for *_, name, seed in sorted(ranked)]
