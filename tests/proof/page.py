"""Writes what the parts of a proof found between the markers of docs/proof.md; the prose around them is by hand."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.models.catalog import MODELS
from tests.proof.history import CLAIMS
from tests.proof.results import ROOT, Models, Mutants, MutationScore, ProofRuns, ProofScene, kept

PAGE: Final = ROOT / "docs" / "proof.md"
KINDS: Final[Mapping[str, str]] = {
    "storm": "Processes that push and drain are killed, frozen and cut off, each for itself.",
    "disk": "A storm over a server whose append-only file has no room, again and again.",
    "clock": "A storm over a server whose clock is set by a little, back, and forward by more than a lease.",
    "versions": "A storm in which some processes are of another version.",
    "race": "Processes that perform many batches side by side are killed, stopped, evicted and paused.",
    "move": "A queue moves to other numbers of shards and back, while its movers and daemons are killed.",
    "failover": "The primary is killed while jobs are pushed, and a replica takes its place.",
}
"""ProofRuns, and what is done in them."""
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
    for claim in CLAIMS:
        yield f"**{claim.id}.** {claim.words}"
        yield ""
        yield f"- *Evaluated:* {claim.sentence}"
        yield f"- *Ends at:* {claim.ends}"
        yield ""


def _models() -> Iterator[str]:
    if models := kept("models", Models):
        for case in MODELS:
            yield f"- **{case.name}**: {case.words}"
        yield ""
        rows = [
            (
                one.model,
                one.bounds,
                f"{one.states:,}",
                f"{one.ends:,}",
                f"{one.depth}" if one.whole else f"{one.depth}, cut there",
                one.fault or "none",
            )
            for one in models.results
        ]
        yield table(("model", "bounds", "states", "ends", "steps", "broken"), rows)
        yield ""
        yield "Each guard of the protocol is left out once, and the model finds what it prevents:"
        yield ""
        guards = [
            (one.model, one.guard, one.fault or "**nothing**", f"{one.states:,}", f"{one.steps}")
            for one in models.guards
        ]
        yield table(("model", "without", "breaks", "states until found", "steps"), guards)
        if played := models.conformance:
            yield ""
            yield (
                f"The model of the lease beside the real scripts: {played.traces:,} random traces from seed "
                f"{played.seed} on, {played.steps:,} steps. Of {played.calls:,} arrivals of calls {played.late:,} were "
                "answered to nobody, as they were late or doubled. After each step nonce, call, token, end, flight and "
                f"waiting {f'differed: **{played.wrong}**' if played.wrong else 'were equal'}."
            )


def _faults() -> Iterator[str]:
    rows = [
        (kind, harm, f"{count:,}")
        for kind, runs in _runs()
        for harm, count in sorted(runs.harm.items(), key=lambda item: -item[1])
    ]
    if rows:
        yield table(("run", "harm", "how often"), rows)


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
        )
        for kind, runs in _runs()
    ]
    if rows:
        head = ("kind", "runs", "minutes", "payloads", "handler runs", "faults", "violations")
        yield table(head, rows)
        yield ""
        for kind, runs in _runs():
            yield f"- **{kind}**: {KINDS[kind]} Seeds: {', '.join(str(run.seed) for run in runs.runs[:SEEDS])}"
            if len(runs.runs) > SEEDS:
                yield f"  and {len(runs.runs) - SEEDS} more, which `build/proof/{kind}.json` names"
        if failovers := dict(_runs()).get("failover"):
            done, killed = failovers.done, failovers.harm["primary killed"]
            yield ""
            yield (
                f"Of {done['payloads']:,} payloads whose push was answered, {killed} deaths of the primary lost "
                f"{done['lost']:,}, and {done['again']:,} were performed once more."
            )
        for kind, runs in _runs():
            for run in runs.runs:
                yield from (f"- **violation** in {kind} {run.seed}: {words}" for words in run.violations)


def _mutants() -> Iterator[str]:
    if mutants := kept("mutants", Mutants):
        rows = [
            (one.name, one.seen_by, "found" if one.is_seen else "**not found**", f"{one.seconds:.1f}")
            for one in mutants.results
        ]
        yield table(("fault", "looked for by", "", "seconds"), rows)


def _score() -> Iterator[str]:
    if score := kept("score", MutationScore):
        files = sorted({one.file for one in score.results})
        times = [one.seconds for one in score.results if one.outcome == "found"]
        is_drawn = f", drawn by seed {score.seed}" if score.seed is not None else ", all of these files"
        yield (
            f"{len(score.results):,} faults{is_drawn}, in {score.seconds / 60:.0f} minutes. Half of those that were "
            f"found took less than {median(times or [0.0]):.1f} s."
        )
        yield ""
        rows = []
        for file in files:
            counts = score.counts(file)
            row = (f"{counts.get(outcome, 0)}" for outcome in OUTCOMES)
            rows.append((f"`{file}`", *row, f"{score.share([file]):.0%}"))
        sums = score.counts()
        rows.append(("**all**", *(f"{sums.get(outcome, 0)}" for outcome in OUTCOMES), f"{score.share(files):.0%}"))
        yield table(("file", *OUTCOMES, "score"), rows)
        yield ""
        if missed := [one for one in score.results if one.outcome == "not found"]:
            yield "Not found:"
            yield ""
            yield from (f"- `{one.file}:{one.line}` {one.change}" for one in missed)
            yield ""
        if score.unproved:
            yield "Lines that no run executes, so that nothing is proved of them:"
            yield ""
            for file, lines in sorted(score.unproved.items()):
                yield f"- `{file}`: {', '.join(map(str, lines))}"


def _runs() -> Iterator[tuple[str, ProofRuns]]:
    for kind in KINDS:
        if runs := kept(kind, ProofRuns):
            yield kind, runs


SEEDS: Final = 30
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
