"""`python -m tests.proof` tries to break the engine, and writes docs/proof.md from what it found.

The short form takes some minutes; `--hours 8` goes on that long, with a seed of its own for each run. `--only` names
parts. It ends with 1 if a claim is broken, or if what must be found is not found.
"""

import argparse
import io
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from tests.proof.generated_mutants.__main__ import tell_progress
from tests.proof.generated_mutants.score import AIMED, FILES, prove_score
from tests.proof.models import prove_models
from tests.proof.mutants import prove_mutants
from tests.proof.page import KINDS, write_page
from tests.proof.results import ROOT, Models, Mutants, MutationScore, ProofRuns, Run, keep, kept, scene
from tests.proof.runs import RUNS, clock, versions

PARTS: Final = ("models", *KINDS, "mutants", "score")
HOUR: Final = 3_600.0
DRAWN: Final = 30
"""Generated faults of a short proof."""
AIM: Final = 0.95
"""The share of generated faults that has to be found in the files that carry what is promised of a lease."""
SHORT: Final = 0.3
"""The size of the runs of a short proof."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the parts, write the page; the exit code."""
    options = _options(arguments)
    began = monotonic()
    _tell(f"seed {options.seed}")
    keep("scene", scene(datetime.now(UTC).date().isoformat()))
    is_long = options.hours > 0
    with _runs(options) as runs:
        for name in options.only or PARTS:
            if name == "models":
                keep(name, prove_models(seed=options.seed, is_long=is_long, tell=_tell))
            elif name == "mutants":
                keep(name, prove_mutants(is_long=is_long, tell=_tell))
            elif name == "score":
                keep(name, prove_score(FILES, None if is_long else DRAWN, options.seed, tell_progress))
            else:
                until = began + options.hours * HOUR * _share(name, options.only)
                run = partial(runs[name], size=1.0 if is_long else SHORT)
                _make_runs(name, run, options.seed, until=until, add=options.add)
    write_page()
    found = faults()
    _tell(*(found or ["No claim was broken, and each planted fault was found. docs/proof.md has the figures."]))
    return 1 if found else 0


@contextmanager
def _runs(options: argparse.Namespace) -> Iterator[dict[str, Callable[..., Run]]]:
    """Those of each kind, with what the options say of them."""
    runs: dict[str, Callable[..., Run]] = {**RUNS}
    if options.faketime:
        runs["clock"] = partial(clock, library=options.faketime)
    with tempfile.TemporaryDirectory() as folder:
        if options.older:
            archive = subprocess.run(
                # The tests too: those of this commit may import what the older package does not have.
                ["git", "archive", options.older, "lowkiq_lambda", "tests"],
                cwd=ROOT,
                capture_output=True,
                check=True,
            )
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as package:
                package.extractall(folder, filter="data")
            runs["versions"] = partial(versions, version=options.older, package=Path(folder))
        yield runs


def _make_runs(kind: str, run: Callable[[int], Run], first: int, *, until: float, add: bool) -> None:
    """One run at least, with the first seed, and more until that time; each is kept as soon as it is over."""
    seed, rng = first, random.Random(first)
    before = kept(kind, ProofRuns) if add else None
    made = list(before.runs) if before else []
    while True:
        _tell(f"{kind} with seed {seed}")
        made.append(run(seed))
        keep(kind, ProofRuns(kind, made))
        if monotonic() >= until:
            return
        seed = rng.randrange(2**32)


def _share(name: str, only: Sequence[str] | None) -> float:
    """The part of the hours at whose end this kind of run is over."""
    kinds = [kind for kind in KINDS if kind in (only or KINDS)]
    return (kinds.index(name) + 1) / len(kinds)


def faults() -> list[str]:
    """A line for all that is wrong in what is kept."""
    models, mutants = kept("models", Models), kept("mutants", Mutants)
    score = kept("score", MutationScore)
    # Of a few that were drawn a share says little.
    share = score.share(AIMED) if score and score.seed is None else 1.0
    runs = [(kind, made) for kind in KINDS if (made := kept(kind, ProofRuns))]
    conformance = models.conformance if models else None
    explored, guards = (models.results, models.guards) if models else ([], [])
    return [
        *(f"{one.model} ({one.bounds}) breaks {one.fault}" for one in explored if one.fault),
        *(f"{one.model} ({one.bounds}) never does {one.never_done}" for one in explored if one.never_done),
        *([f"the scripts differ from the model: {conformance.wrong}"] if conformance and conformance.wrong else []),
        *(f"{one.model} without {one.guard!r} breaks nothing" for one in guards if not one.fault),
        *(f"{kind} {run.seed}: {words}" for kind, made in runs for run in made.runs for words in run.violations),
        *([f"{share:.0%} of the faults of {', '.join(AIMED)} were found, {AIM:.0%} must be"] if share < AIM else []),
        *(f"{one.name} was not found" for one in (mutants.results if mutants else ()) if not one.is_seen),
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.proof", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0, help="how long runs go on; a short proof by default")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(2**32), help="of the first run of each kind"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts alone; the others stay as they are")
    parser.add_argument("--older", metavar="COMMIT", help="some processes of `versions` have the package of it")
    parser.add_argument("--faketime", type=Path, metavar="FILE", help="libfaketime.so.1: sets the clock below servers")
    parser.add_argument("--add", action="store_true", help="keep the runs that an earlier proof of this commit made")
    return parser.parse_args(arguments)


def _tell(*lines: str) -> None:
    # The processes that are harmed warn on the error output.
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
