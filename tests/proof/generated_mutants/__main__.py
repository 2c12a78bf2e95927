"""`python -m tests.proof.generated_mutants` plants generated faults into the Lua scripts, and tells which are found.

All faults of all files take an hour or more; `--count 30 --seed 7` draws some, `--only include/turn` names files. What
came of them lies in build/proof/score.json, and docs/proof.md has it.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from typing import Final

from tests.proof.generated_mutants.score import FILES, prove_score
from tests.proof.page import write_page
from tests.proof.results import MutationScore, ScoredMutant, keep, kept

WIDTH: Final = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant them, and write the page; 0 if the scripts as they are pass."""
    parser = argparse.ArgumentParser("python -m tests.proof.generated_mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FILES, metavar="FILE", help=f"of {', '.join(FILES)}")
    parser.add_argument("--count", type=int, help="how many are drawn; all of them by default")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="which are drawn")
    parser.add_argument(
        "--again", action="store_true", help="look for longer, and only for what was not found the last time"
    )
    options = parser.parse_args(arguments)
    before = kept("score", MutationScore)
    files = options.only or FILES
    again = MutationScore([one for one in before.results if one.file in files]) if options.again and before else None
    score = prove_score(files, options.count, options.seed, tell_progress, again)
    sys.stderr.write("\n")
    for one in score.results:
        if one.outcome == "not found":
            sys.stdout.write(f"not found: {one.file}:{one.line} {one.change}\n")
    sys.stdout.writelines(f"{outcome}: {count}\n" for outcome, count in sorted(score.counts().items()))
    keep("score", score.beside(before) if options.only and before else score)
    write_page()
    return 0


def tell_progress(number: int, count: int, one: ScoredMutant | None) -> None:
    """A bar that moves on with each fault, and its words."""
    done = round(WIDTH * number / max(1, count))
    words = f"{one.outcome}: {one.file}:{one.line}" if one else "which lines do the runs execute?"
    sys.stderr.write(f"\r[{'#' * done}{' ' * (WIDTH - done)}] {number}/{count} {words:60.60}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
