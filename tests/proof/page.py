"""Writes what the parts of a proof found between the markers of docs/proof.md; the prose around them is by hand."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.models.catalog import MODELS
from tests.proof.history import CLAIMS
from tests.proof.results import ROOT, GuardResult, Models, Mutants, MutationScore, ProofRuns, ProofScene, kept

PAGE: Final = ROOT / "docs" / "proof.md"
KINDS: Final[Mapping[str, str]] = {
    "storm": "processes that push and drain are killed, frozen and cut off, one by one.",
    "disk": (
        "a storm in which the server's files cannot grow for a while (`RLIMIT_FSIZE`), so it refuses writes. It writes "
        "an append-only file with `appendfsync everysec`."
    ),
    "clock": (
        "a storm in which the server's time moves by up to a twenty-fifth of a lease, back by up to 1.5 leases, or "
        "forward by 1.5, which ends leases. `--faketime` sets the server's own clock, by libfaketime."
    ),
    "versions": (
        "a storm in which some processes have scripts with another text; with `--older`, the package of another commit."
    ),
    "race": "processes with concurrent batches are killed, stopped, evicted and paused.",
    "move": "a queue is resharded there and back while movers and daemons are killed.",
    "failover": "the primary is killed during pushes, and a replica takes over.",
}
"""ProofRuns, and what is done in them."""
STORMS: Final = ("storm", "disk", "clock", "versions")
_NUMBER: Final = re.compile(r"[\d,.]+")
_BLOCK: Final = re.compile(r"(<!-- proof: (?P<name>[a-z]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write_page(path: Path = PAGE) -> None:
    """Fill each block whose part was made; the others stay as they are."""
    path.write_text(filled(path.read_text()))


def filled(text: str) -> str:
    """The text of the page with what was found."""
    return _BLOCK.sub(lambda match: f"{match[1]}{_block(match['name']) or match[3]}{match[4]}", text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In markdown: columns of numbers to the right, and others to the left."""
    rule = ["---:" if all(_NUMBER.fullmatch(cell) for cell in column) else "---" for column in zip(*rows, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _block(name: str) -> str:
    lines = [*BLOCKS[name]()]
    return "".join(f"{line}\n" for line in ["", *lines, ""]) if lines else ""


def _scene() -> Iterator[str]:
    if scene := kept("scene", ProofScene):
        yield (
            f"lowkiq_lambda {scene.version} at `{scene.commit}`, {scene.server}, Python {scene.python}, {scene.system} "
            f"with {scene.cores} cores and {scene.gigabytes:.0f} GB of memory, on {scene.day}."
        )


def _claims() -> Iterator[str]:
    yield table(("claim", "means", "ends at"), [(claim.id, claim.words, claim.ends) for claim in CLAIMS])


def _models() -> Iterator[str]:
    if models := kept("models", Models):
        words = {case.name: case.words for case in MODELS}
        rows = []
        for name in dict.fromkeys(one.model for one in models.results):
            bounds = (f"{one.bounds}: {one.states:,}" for one in models.results if one.model == name)
            rows.append((name, words[name], "; ".join(bounds)))
        yield table(("model", "steps, in all orders", "bounds: states"), rows)
        yield ""
        broken = [f"{one.model} ({one.bounds}) breaks **{one.fault}**." for one in models.results if one.fault]
        yield " ".join(broken) or "No order of these steps breaks a promise."
        yield "Each guard of the protocol is left out once, and the models find what breaks without it:"
        yield ""
        searched = list[tuple[str, ...]]()
        for name in dict.fromkeys(one.model for one in models.guards):
            guards = [one for one in models.guards if one.model == name]
            idle = "".join(f", **{one.guard} breaks nothing**" for one in guards if not one.fault)
            searched.append((name, f"{len(guards)}{idle}", *(spread(each) for each in _searched(guards))))
        yield table(("model", "guards", "states until found", "steps"), searched)
        if played := models.conformance:
            yield ""
            yield (
                f"The real scripts ran {played.traces:,} random traces of the lease's model, {played.steps:,} steps, "
                f"from seed {played.seed}. {played.late:,} of {played.calls:,} calls arrived late or twice, so nobody "
                "got their answer. After each step the scripts' nonce, call, token, end, flight and waiting "
                f"{f'differed: **{played.wrong}**' if played.wrong else 'equalled those of the model'}."
            )


def _searched(guards: Iterable[GuardResult]) -> tuple[list[int], list[int]]:
    """The states and the steps until something breaks without each."""
    return [one.states for one in guards], [one.steps for one in guards]


def spread(values: Sequence[float], form: str = ",") -> str:
    """From the least to the most."""
    least, most = format(min(values), form), format(max(values), form)
    return least if least == most else f"{least} to {most}"


def _faults() -> Iterator[str]:
    made = dict(_runs())
    rows = []
    for kinds in ([kind for kind in made if kind in STORMS], *([kind] for kind in made if kind not in STORMS)):
        harm = sum((Counter(made[kind].harm) for kind in kinds), Counter[str]())
        rows.append((", ".join(kinds), ", ".join(f"{name} {count:,}" for name, count in harm.most_common())))
    if made:
        yield from (f"- **{kind}**: {KINDS[kind]}" for kind in made)
        yield ""
        yield table(("runs", "harm, and how often"), [row for row in rows if row[0]])


def _results() -> Iterator[str]:
    rows = [
        (
            kind,
            f"{len(runs.runs)}",
            f"{runs.seconds / 60:.0f}",
            f"{runs.done.get('payloads', 0):,}",
            f"{runs.done.get('handler runs', 0):,}",
            f"{sum(runs.harm.values()):,}",
            f"{sum(len(run.violations) for run in runs.runs)}",
            f"{runs.runs[0].seed}",
        )
        for kind, runs in _runs()
    ]
    if rows:
        head = ("kind", "runs", "minutes", "payloads", "handler runs", "faults", "violations", "first seed")
        yield table(head, rows)
        yield ""
        yield "The other seeds of a kind follow from its first."
        for kind, runs in _runs():
            seeds = [run.seed for run in runs.runs]
            if seeds != following(seeds[0], len(seeds)):
                yield f"Those of {kind} do not: {', '.join(map(str, seeds))}."
        if failovers := dict(_runs()).get("failover"):
            done, killed = failovers.done, failovers.harm["primary killed"]
            yield (
                f"Of {done['payloads']:,} payloads whose push was answered, {killed} deaths of the primary lost "
                f"{done['lost']:,}, and {done['again']:,} were performed once more."
            )
        for kind, runs in _runs():
            for run in runs.runs:
                yield from (f"- **violation** in {kind} {run.seed}: {words}" for words in run.violations)


def following(seed: int, count: int) -> list[int]:
    """The seeds of so many runs of a kind, from the first one."""
    rng = random.Random(seed)
    return [seed, *(rng.randrange(2**32) for _ in range(count - 1))]


def _mutants() -> Iterator[str]:
    if mutants := kept("mutants", Mutants):
        rows = []
        for by in dict.fromkeys(one.seen_by for one in mutants.results):
            made = [one for one in mutants.results if one.seen_by == by]
            missed = ", ".join(f"**{one.name}**" for one in made if not one.is_seen) or "none"
            rows.append((by, f"{len(made)}", missed, spread([one.seconds for one in made], ".1f")))
        yield table(("searched by", "faults", "not found", "seconds"), rows)


def _score() -> Iterator[str]:
    if score := kept("score", MutationScore):
        files = sorted({one.file for one in score.results})
        times = [one.seconds for one in score.results if one.outcome == "found"]
        is_drawn = f", drawn by seed {score.seed}," if score.seed is not None else ""
        yield (
            f"{len(score.results):,} faults{is_drawn} were tried in {score.seconds / 60:.0f} minutes; half of those "
            f"found took less than {median(times or [0.0]):.1f} s."
        )
        yield ""
        whole = [file for file in files if score.share([file]) == 1.0 and file not in score.unproved]
        rows = [_score_of([file], score) for file in files if file not in whole]
        yield table(
            ("file", *OUTCOMES, "score", "lines not found", "lines not executed"),
            [*rows, *([_score_of(whole, score)] if whole else []), ("**all**", *_score_of(files, score)[1:6], "", "")],
        )


def _score_of(files: Sequence[str], score: MutationScore) -> tuple[str, ...]:
    """A row: the names of the files, their counts and share, and the lines in which something is not proved."""
    mine = [one for one in score.results if one.file in files]
    counts = Counter(one.outcome for one in mine)
    missed = sorted({one.line for one in mine if one.outcome == "not found"})
    lines = [missed, [line for file in files for line in score.unproved.get(file, [])]]
    return (
        ", ".join(f"`{file}`" for file in files),
        *(f"{counts[outcome]}" for outcome in OUTCOMES),
        f"{score.share(files):.0%}",
        *(", ".join(map(str, each)) or "none" for each in lines),
    )


def _runs() -> Iterator[tuple[str, ProofRuns]]:
    for kind in KINDS:
        if runs := kept(kind, ProofRuns):
            yield kind, runs


OUTCOMES: Final = ("found", "not found", "equivalent", "not proved")
BLOCKS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "scene": _scene,
    "claims": _claims,
    "models": _models,
    "faults": _faults,
    "results": _results,
    "mutants": _mutants,
    "score": _score,
}
