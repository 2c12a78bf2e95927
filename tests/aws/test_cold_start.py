"""What the drain function's package costs a cold start: bytes, modules, and time beside an empty function's."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import aws_lambda_powertools
import pytest

from bench.cold import MOST, drain_in, main, measure, runtime_client
from lowkiq_lambda.stack.packaging.lean import thin_out
from tests.kit.servers import Server

MOST_BYTES_ZIPPED: Final = 6_080_000
"""Of the drain function: what a cold start has to fetch. 80,000 are the rule for shards and their schedules."""
MOST_MODULES: Final = 190
"""Of a drain function that has started, beyond those of Python itself and of Lambda's runtime client."""

LOADED: Final = """
import gc, json, sys
import awslambdaric.bootstrap
before = {*sys.modules}
import lowkiq_lambda.aws.drain_function as function
loaded = {*sys.modules} - before
collector = [gc.isenabled(), gc.get_freeze_count() > 0]

class Context:
    function_name = invoked_function_arn = aws_request_id = "drain"
    memory_limit_in_mb = "256"
    get_remaining_time_in_millis = staticmethod(lambda: 60_000)

app = function.environment().app
app.push_many(app.workers[0], [{"id": "a", "payload": 1}])
drained = function.handler({"tick": True}, Context())["counts"]
afterwards = {*sys.modules} - before
found = {"loaded": [*loaded], "collector": collector, "drained": drained, "afterwards": [*afterwards]}
sys.stderr.write(json.dumps(found))
"""
SELDOM: Final = {
    *("asyncio", "boto3", "botocore", "concurrent.futures", "email", "importlib.metadata", "zipfile"),
    *(f"redis.{name}" for name in ("client", "cluster", "commands", "keyspace_notifications", "lock", "sentinel")),
}
"""What much else would come with, and nothing needs: of redis-py, all that is not a connection."""

pytestmark = [
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(sys.platform != "linux", reason="a package holds what runs on Linux"),
]


def test_a_cold_start_imports_little(packages: Path, tmp_path: Path, server: Server, queue_name: str) -> None:
    """Nothing for coroutines, mails or archives, neither at the start nor with the first tick, and few modules.

    The garbage collector, which is off meanwhile, works again, on what is made from then on.
    """
    drain = drain_in(packages / "DrainFunction")
    with runtime_client(tmp_path) as client:
        paths = {"PYTHONPATH": f"{drain.package}:{client}", "AWS_LAMBDA_FUNCTION_NAME": "drain"}
        environment = {**drain.settings, **paths, "LOWKIQ_REDIS_URL": server.url, "QUEUE": queue_name}
        command = [sys._base_executable, "-S", "-c", LOADED]  # type: ignore[attr-defined]  # of the interpreter, not of this environment
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stderr)

    assert {"done": 1} == found["drained"]
    assert set() == SELDOM & {*found["loaded"], *found["afterwards"]}
    installed = [name for name in found["loaded"] if name.partition(".")[0] not in sys.stdlib_module_names]
    assert len(installed) <= MOST_MODULES, installed
    assert [True, True] == found["collector"]


def test_a_cold_start_takes_three_times_an_empty_functions(packages: Path, tmp_path: Path) -> None:
    """Of the processor, until the first event is asked for, the least of starts in turns; a loaded machine has more."""

    def times() -> float:
        starts = measure(packages / "DrainFunction", tmp_path, 4)
        return min(one.processor for one in starts.drain) / min(one.processor for one in starts.empty)

    assert any(times() <= MOST for _ in range(3))


def test_cold_starts_are_measured(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark prints INIT of both with the ratio, and how long a push takes, cold and warm."""
    main(["--repeats=1", "--package", str(packages / "DrainFunction")])

    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in capsys.readouterr().out.splitlines()]
    found = {line[0]: line[1:] for line in lines}
    assert "at most 3" == found["the drain function"][3]
    for name in ("an empty function with Powertools", "the drain function", "cold", "warm"):
        assert float(found[name][0].replace(",", "")) > 0


def test_the_drain_functions_zip_is_small(packages: Path, tmp_path: Path) -> None:
    """Bytecode included. Powertools comes without what answers HTTP requests."""
    archive = Path(shutil.make_archive(str(tmp_path / "drain"), "zip", packages / "DrainFunction"))

    assert 0 < archive.stat().st_size <= MOST_BYTES_ZIPPED
    assert not (packages / "DrainFunction" / "aws_lambda_powertools" / "event_handler").exists()


@pytest.mark.parametrize(
    "brought", [(), ("pydantic",), ("jsonpath_ng", "fastjsonschema", "django", "opentelemetry", "pybreaker")]
)
def test_a_package_has_what_the_app_can_use(tmp_path: Path, brought: tuple[str, ...]) -> None:
    """The logger of Powertools writes models of pydantic by a part of what answers requests."""
    place = tmp_path / "aws_lambda_powertools"
    shutil.copytree(Path(*aws_lambda_powertools.__path__), place, ignore=shutil.ignore_patterns("__pycache__"))
    parts = {
        "django": tmp_path / "lowkiq_lambda/contrib/django",
        "opentelemetry": tmp_path / "lowkiq_lambda/contrib/otel",
        "pybreaker": tmp_path / "redis/multidb",
    }
    for part in parts.values():
        part.mkdir(parents=True)
    for name in brought:
        (tmp_path / name).mkdir()

    thin_out(tmp_path)

    for needed, inside in (
        ("pydantic", "event_handler/openapi/compat.py"),
        ("pydantic", "utilities/parser/parser.py"),
        ("jsonpath_ng", "utilities/data_masking/base.py"),
        ("fastjsonschema", "utilities/validation/base.py"),
    ):
        assert (needed in brought) == (place / inside).exists()
    assert {*brought} & {*parts} == {name for name, part in parts.items() if part.exists()}
    assert (place / "logging" / "logger.py").exists()
