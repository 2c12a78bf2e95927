"""What a cold start takes: INIT of the drain function beside an empty one's, and a push that waits for it.

`python -m bench.cold`. The drain function's package is built as for a deployment, bytecode included. The empty
function has Powertools' Logger and nothing else, packed in the same way. Both run in Lambda's runtime client, in a
Python without other packages, in turns, so that a slow minute of the machine hits both. INIT is from the start of the
process until it asks for its first event: time of the processor, which a busy machine lengthens less than the
clock's. A push with wake on push is timed by the clock from `push_many` to the handler: cold, where the process
is yet to be started, and warm, where it stands frozen. AWS adds what is not in a process: an environment and the
package's download before a cold start, and the call of Lambda's API.
"""

import argparse
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from bench.here import new_queue
from bench.table import MILLISECONDS, ratio, spread
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.stack.packaging.build import build, compile_modules
from lowkiq_lambda.stack.packaging.targets import BuildTarget
from tests.kit.servers import Server
from tests.kit.servers.lambda_runtime import LambdaEnvironment

MOST: Final = 3.0
"""How many times the empty function's INIT the drain function's may take."""
NOWHERE: Final = "redis://127.0.0.1:1"
"""A server that is not asked for anything."""

# Of this interpreter, not of this environment; without what is installed for it.
_PYTHON: Final = (sys._base_executable, "-S")  # type: ignore[attr-defined]  # noqa: SLF001 - the only way to it
_RUNTIME_CLIENT: Final = ("awslambdaric", "runtime_client", "simplejson", "snapshot_restore_py")
_POWERTOOLS: Final = ("aws_lambda_powertools", "jmespath", "typing_extensions.py")
_EMPTY: Final = """
from aws_lambda_powertools import Logger

logger = Logger(service="empty")

def handler(event, context):
    logger.info("nothing")
"""
_APP: Final = """
import os, time
from lowkiq_lambda import Lowkiq

app = Lowkiq()

@app.worker(queue_name=os.environ.get("QUEUE", "nothing"), shards_count=1)
def tell(batch):
    print("began at", time.monotonic(), flush=True)
"""


class Function(NamedTuple):
    """A package and what is called in it, with the settings of its environment."""

    package: Path
    handler: str
    settings: Mapping[str, str] = {}


class Init(NamedTuple):
    """Seconds until the first event is asked for: of the processor, and by the clock."""

    processor: float
    clock: float


class Starts(NamedTuple):
    """The empty function's and the drain function's, in turns."""

    empty: Sequence[Init]
    drain: Sequence[Init]

    @property
    def ratios(self) -> list[float]:
        """Of the processor's times, turn by turn."""
        return [drain.processor / empty.processor for empty, drain in zip(self.empty, self.drain, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        "python -m bench.cold", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="starts of each function (20)")
    parser.add_argument(
        "--package", type=Path, metavar="FOLDER", help="the drain function's, where it is built already"
    )
    given = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="lowkiq-bench-") as folder:
        package = given.package or built(Path(folder))
        print(init_table(measure(package, Path(folder), given.repeats)))
        print()
        print(push_table(package, Path(folder), given.repeats))


def built(folder: Path) -> Path:
    """The drain function's package, as a deployment has it."""
    (folder / "app").mkdir()
    machine = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
    for sentence in build("DrainFunction", BuildTarget(sys.version_info[1], machine), folder / "drain", folder / "app"):
        print(sentence, file=sys.stderr)
    return folder / "drain"


def drain_in(package: Path) -> Function:
    """The drain function of the package, with an app that tells when its handler began, and no server."""
    settings = {"LOWKIQ_APP": "telling:app", "LOWKIQ_REDIS_URL": NOWHERE, "LOWKIQ_IDLE": "end"}
    return Function(package, "lowkiq_lambda.aws.drain_function.handler", settings)


def measure(package: Path, folder: Path, repeats: int) -> Starts:
    """Starts of the drain function in that package, and of the empty one, in turns; the first of each counts not."""
    with TemporaryDirectory(dir=folder) as into, runtime_client(folder) as client:
        empty = _empty_function(package, Path(into))
        turns = [(init(empty, client, folder), init(drain_in(package), client, folder)) for _ in range(1 + repeats)]
    return Starts(*zip(*turns[1:], strict=True))


def init(function: Function, client: Path, folder: Path) -> Init:
    """One start."""
    began_at = time.monotonic()
    with environment_of(function, client, folder) as environment:
        pid = environment.start()
        seconds = time.monotonic() - began_at
        return Init(time.clock_gettime(_processor_clock(pid)), seconds)


def environment_of(function: Function, client: Path, folder: Path) -> LambdaEnvironment:
    """Has the package and Lambda's runtime client, and no other package."""
    paths = {"PYTHONPATH": f"{function.package}:{client}", "LAMBDA_TASK_ROOT": str(function.package)}
    settings = {**function.settings, **paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return LambdaEnvironment(function.handler, settings, folder, package=function.package, python=_PYTHON)


def init_table(starts: Starts) -> str:
    """One line for each function."""
    goal = [f"at most {whole(MOST)}", "reached" if median(starts.ratios) <= MOST else "**short**"]
    rows = [
        ["an empty function with Powertools", *_figures(starts.empty), "", "", ""],
        ["the drain function", *_figures(starts.drain), spread(starts.ratios, ratio), *goal],
    ]
    return markdown(("INIT of", "processor ms", "clock ms", "times the empty one", "to reach", ""), rows)


def push_table(package: Path, folder: Path, repeats: int) -> str:
    """One line for a cold start, and one for a warm one."""
    with Server() as server, runtime_client(folder) as client:
        queue = new_queue("cold")
        drain = drain_in(package)
        woken = drain._replace(settings={**drain.settings, "LOWKIQ_REDIS_URL": server.url, "QUEUE": queue})
        cold, warm = zip(*(_push(server, queue, woken, client, folder) for _ in range(1 + repeats)), strict=True)
    found = {"cold": cold[1:], "warm": warm[1:]}
    rows = [[kind, spread([MILLISECONDS * seconds for seconds in each], ratio)] for kind, each in found.items()]
    return markdown(("from a push to its handler, with waking", "clock ms"), rows)


def _push(server: Server, queue: str, function: Function, client: Path, folder: Path) -> tuple[float, float]:
    """Seconds from a push to its handler: of the push that starts the process, and of the next."""
    with environment_of(function, client, folder) as environment:
        invocations = []

        def start_drain(queue_name: str, shard: int) -> None:
            invocations.append(environment.begin({"queue": queue_name, "shard": shard}))

        app = Lowkiq(Config(redis_url=server.url, wake_function=start_drain))
        worker = app.worker(queue_name=queue, shards_count=1)(print)

        def push() -> float:
            pushed_at = time.monotonic()
            worker.push_many([{"id": "due"}])
            (line,) = [line for line in invocations.pop().result().log.splitlines() if line.startswith("began at")]
            return float(line.rpartition(" ")[2]) - pushed_at

        # A producer has a connection and its scripts before the push that counts.
        worker.push_many([{"id": "later", "delay": 86_400}])
        took = push(), push()
        app.core.backend.client.close()
        return took


def _figures(inits: Sequence[Init]) -> list[str]:
    return [spread([MILLISECONDS * seconds for seconds in found], whole) for found in zip(*inits, strict=True)]


def _empty_function(package: Path, into: Path) -> Function:
    for name in _POWERTOOLS:
        place = package / name
        copy: Callable[[Path, Path], object] = shutil.copytree if place.is_dir() else shutil.copy
        copy(place, into / name)
    (into / "function.py").write_text(_EMPTY)
    compile_modules(_PYTHON[0], into)
    return Function(into, "function.handler")


@contextmanager
def runtime_client(folder: Path) -> Iterator[Path]:
    """A folder with the runtime client of this environment, and the app."""
    with TemporaryDirectory(dir=folder) as alone:
        for name in _RUNTIME_CLIENT:
            spec = find_spec(name)
            if spec is None or spec.origin is None:
                raise RuntimeError(f"{name} is not installed: run `make setup`")
            place = Path(spec.origin)
            found = place.parent if place.name == "__init__.py" else place
            (Path(alone) / found.name).symlink_to(found)
        (Path(alone) / "telling.py").write_text(_APP)
        yield Path(alone)


def _processor_clock(pid: int) -> int:
    """The clock of all that a process had of the processor, as Linux numbers it."""
    return (~pid << 3) | 2


if __name__ == "__main__":
    main()
