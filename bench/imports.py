"""How long a cold start takes that is ours: each function, and a program that pushes, beside its dependencies alone.

`python -m bench.imports`. For the drain function that is its import; for the dashboard's, the import and the first
request, GET /sign-in, as much is only made or loaded then: routes, the template, threads for answers; for a program,
the import of the names that it declares a worker with. Each happens in
a fresh process with the library as a package has it, templates and bytecode made, beside another that only imports
the dependencies, in turns, so that a slow minute of the machine hits both; times are the processor's, for which an
import that finds its files in memory has nothing to wait. Dependencies are all modules that were loaded in the end
and that are neither ours nor Python's own: what Python's own take counts as ours, unless a dependency loads them too.
"""

import argparse
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

import lowkiq_lambda
from bench.table import MILLISECONDS, spread
from lowkiq_lambda.cli.output import markdown, whole


class Start(NamedTuple):
    """A module with the names that are imported from it, and the first event of a function, if that counts too."""

    module: str
    event: Mapping[str, Any] | None = None
    names: Sequence[str] = ()
    target: float = 60.0
    """Milliseconds that ours may cost on top."""


DRAIN: Final = Start("lowkiq_lambda.aws.drain_function")
DASHBOARD: Final = Start(
    "lowkiq_lambda.aws.dashboard_function",
    {
        "version": "2.0",
        "rawPath": "/sign-in",
        "rawQueryString": "",
        "headers": {"host": "dashboard.example", "accept-encoding": "gzip"},
        "requestContext": {"http": {"method": "GET", "path": "/sign-in", "sourceIp": "192.0.2.1"}},
    },
)

PROGRAM: Final = Start("lowkiq_lambda", names=("Batch", "Config", "Lowkiq", "Worker"), target=120.0)

_ENVIRONMENT: Final = {"LOWKIQ_DASHBOARD_PASSWORD": "of the benchmark"}
_START: Final = """
import sys, time, json, importlib, types
about = dict(function_name="bench", invoked_function_arn="bench", memory_limit_in_mb="512", aws_request_id="1")
event, names, *modules = json.loads(sys.argv[1])
began_at = time.process_time()
for each in modules:
    module = importlib.import_module(each)
for name in names:
    getattr(module, name)
if event is not None:
    answer = module.handler(event, types.SimpleNamespace(**about))
    assert answer["statusCode"] == 200, answer
"""
_TIME: Final = f"{_START}print(time.process_time() - began_at)"
_LIST: Final = f"""{_START}
known = {{"lowkiq_lambda", "__main__"}} | sys.stdlib_module_names
found = [name for name in sys.modules if name.partition(".")[0] not in known]
print(json.dumps([name for name in found if sys.modules[name].__spec__]))
"""


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.imports", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="fresh processes for each (20)")
    print(table(parser.parse_args(arguments).repeats))


def table(repeats: int) -> str:
    """One line for each start, and whether it is quick enough."""
    head = ("cold start of", "dependencies ms", "all ms", "on top ms", "to reach", "")
    with TemporaryDirectory(prefix="lowkiq-bench-") as folder:
        package = _packaged(Path(folder))
        return markdown(head, [_line(package, start, repeats) for start in (DRAIN, DASHBOARD, PROGRAM)])


def _packaged(folder: Path) -> Path:
    """The library there, made ready as by a build."""
    library = folder / lowkiq_lambda.__name__
    shutil.copytree(
        Path(lowkiq_lambda.__file__).parent, library, ignore=shutil.ignore_patterns("__pycache__", "compiled")
    )
    runpy.run_path(str(library / "dashboard" / "template_build.py"))["compile_all"]()
    command = [sys.executable, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(library)]
    subprocess.run(command, check=True)
    return folder


def _line(package: Path, start: Start, repeats: int) -> list[str]:
    both = _given([start.module], start.event, start.names)
    dependencies = _given(msgspec.json.decode(_output(package, _LIST, both), type=list[str]))
    _milliseconds(package, dependencies)
    taken = [(_milliseconds(package, dependencies), _milliseconds(package, both)) for _ in range(repeats)]
    on_top = [after - before for before, after in taken]
    alone, together = zip(*taken, strict=True)
    figures = (spread(values, whole) for values in (alone, together, on_top))
    reached = "reached" if median(on_top) <= start.target else "**short**"
    first = f"`{start.module}`" + "".join(f", `{name}`" for name in start.names)
    return [first, *figures, f"at most {whole(start.target)}", reached]


def _given(modules: Sequence[str], event: Mapping[str, Any] | None = None, names: Sequence[str] = ()) -> str:
    return msgspec.json.encode([event, names, *modules]).decode()


def _milliseconds(package: Path, given: str) -> float:
    return MILLISECONDS * float(_output(package, _TIME, given))


def _output(package: Path, code: str, given: str) -> str:
    # Powertools warns, at import, where it finds nothing of Lambda's environment.
    command, environment = [sys.executable, "-c", code, given], {**os.environ, **_ENVIRONMENT}
    # There, as Python looks for modules where it starts.
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=package)
    return done.stdout


if __name__ == "__main__":
    main()
