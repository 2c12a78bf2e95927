"""How long a cold start imports: the drain function, beside its dependencies alone.

`python -m bench.imports`. Each import happens in a fresh process with bytecode at hand, the two in turns, so that a
slow minute of the machine hits both; times are the processor's, for which an import that finds its files in memory has
nothing to wait. Dependencies are all modules that the function brings along and that are neither ours nor Python's own.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from bench.table import MILLISECONDS, markdown, spread, whole

HANDLER: Final = "lowkiq_lambda.aws.drain_function"
TARGET: Final = 60.0
"""Milliseconds that ours may cost on top."""

_LIST: Final = """
import sys, json, importlib
importlib.import_module(sys.argv[1])
known = {"lowkiq_lambda", "__main__"} | sys.stdlib_module_names
found = [name for name in sys.modules if name.partition(".")[0] not in known]
print(json.dumps([name for name in found if sys.modules[name].__spec__]))
"""
_TIME: Final = """
import sys, time, importlib
names, began_at = sys.argv[1:], time.process_time()
for name in names:
    importlib.import_module(name)
print(time.process_time() - began_at)
"""


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.imports", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="fresh processes for each (20)")
    print(table(parser.parse_args(arguments).repeats))


def table(repeats: int) -> str:
    """One line for the function, and whether it is quick enough."""
    dependencies = _dependencies()
    cases = [dependencies, [HANDLER]]
    for case in cases:
        _milliseconds(case)
    taken = [[_milliseconds(case) for case in cases] for _ in range(repeats)]
    alone, together = ([pair[position] for pair in taken] for position in (0, 1))
    on_top = [after - before for before, after in taken]
    head = ("import of", "dependencies ms", "all ms", "on top ms", "to reach", "")
    reached = "reached" if median(on_top) <= TARGET else "**short**"
    figures = (spread(values, whole) for values in (alone, together, on_top))
    return markdown(head, [(f"`{HANDLER}`", *figures, f"at most {whole(TARGET)}", reached)])


def _dependencies() -> list[str]:
    return msgspec.json.decode(_output(_LIST, [HANDLER]), type=list[str])


def _milliseconds(modules: Sequence[str]) -> float:
    return MILLISECONDS * float(_output(_TIME, modules))


def _output(code: str, arguments: Sequence[str]) -> str:
    # Powertools warns, at import, where it finds nothing of Lambda's environment.
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
