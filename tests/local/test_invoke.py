"""`lowkiq stack invoke`: the functions' handlers, played without AWS."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.replay.jobs import ApplyChanges
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.aws.events import selected
from tests.kit.daemons import clean_environment
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server
from tests.local.programs import Project, environment

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "local" / "events"
INGEST_EVENTS = sorted(EVENTS.glob("ingest-*.json"))

APP = """
import threading
from lowkiq_lambda import Lowkiq
from tests.kit.examples import mostly_nightly

app = Lowkiq()

@app.worker(queue_name={queue_name!r}, shards_count=2)
def greet(batch):
    print("printed by the handler")
    threading.Event().wait({seconds})
"""


class Shop:
    """A folder with an app, in which the command is run."""

    def __init__(self, folder: Path, queue_name: str, server_url: str) -> None:
        self._folder = folder
        self._queue_name = queue_name
        self._server_url = server_url
        self.write()

    def write(self, seconds: float = 0.0) -> None:
        """Write the app; its handler takes so long."""
        (self._folder / "shop.py").write_text(APP.format(queue_name=self._queue_name, seconds=seconds))

    def push(self, *ids: str) -> None:
        """Push jobs from here."""
        app = Lowkiq(Config(redis_url=self._server_url))
        worker = app.worker(queue_name=self._queue_name, shards_count=2)(print)
        worker.push_many([{"id": id} for id in ids])

    def invoke(
        self, *arguments: str, app: str | None = "shop:app", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """The command, run to its end."""
        return subprocess.run(
            [sys.executable, "-m", "lowkiq_lambda", "stack", "invoke", *([app] if app else []), *arguments],
            cwd=self._folder,
            env={**clean_environment(), "LOWKIQ_REDIS_URL": self._server_url, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def shop(tmp_path: Path, queue_name: str, server_url: str) -> Shop:
    """An app on the shared server."""
    return Shop(tmp_path, queue_name, server_url)


def answer_of(completed: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the handler returned."""
    answer: dict[str, Any] = json.loads(completed.stdout)
    return answer


def test_a_drain_performs_what_is_due(shop: Shop, queue_name: str) -> None:
    """The real handler drains what the event names; its answer is all that the standard output has."""
    shop.push("a", "b", "c")

    completed = shop.invoke("--event", json.dumps({"queue": queue_name}))

    assert 0 == completed.returncode, completed.stderr
    assert 3 == answer_of(completed)["counts"]["done"]
    assert "printed by the handler" in completed.stderr


def test_a_tick_publishes_the_queues(shop: Shop, queue_name: str) -> None:
    """As the minute's schedule has it."""
    shop.push("a")

    completed = shop.invoke("--event", '{"tick": "only"}')

    assert 0 == completed.returncode, completed.stderr
    assert 1 == answer_of(completed)["queues"][queue_name]["length"]


def test_a_request_from_a_file_is_answered(shop: Shop, queue_name: str) -> None:
    """The sample request is one that the dashboard takes."""
    tokens = {"LOWKIQ_DASHBOARD_TOKENS": "local:reader:a-token-for-samples"}

    completed = shop.invoke("--function", "dashboard", "--event", f"@{EVENTS / 'dashboard.json'}", **tokens)

    assert 200 == answer_of(completed)["statusCode"]
    assert queue_name in answer_of(completed)["body"]


@pytest.mark.parametrize("path", sorted(EVENTS.glob("drain-*.json")), ids=lambda path: path.stem)
def test_the_sample_events_name_shards_of_the_sample_app(path: Path) -> None:
    """Each sample of an event names at least one shard that there is."""
    app = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0"))
    app.worker(queue_name=ApplyChanges.queue_name, shards_count=ApplyChanges.shards_count)(print)

    assert selected(json.loads(path.read_text()), app.core.drains.drainer.shards())


@pytest.mark.parametrize("path", mostly_nightly(INGEST_EVENTS, *INGEST_EVENTS[:2]), ids=lambda path: path.stem)
def test_the_sample_events_of_sources_become_jobs_of_the_sample_app(shop: Shop, path: Path, server: Server) -> None:
    """What SQS, EventBridge, S3 and DynamoDB send is mapped and pushed by the ingest function."""
    completed = shop.invoke(
        "--function", "ingest", "--event", f"@{path}", app="local.replay.jobs:app", PYTHONPATH=str(ROOT)
    )

    assert 0 == completed.returncode, completed.stderr
    assert [] == answer_of(completed).get("batchItemFailures", [])
    app = Lowkiq(Config(redis_url=server.url))
    worker = app.worker(queue_name=ApplyChanges.queue_name, shards_count=ApplyChanges.shards_count)(print)
    assert app.operate(worker).waiting.delete(["README.md", "notes/today.txt"])


def test_what_the_handler_raises_is_its_answer(shop: Shop) -> None:
    """As on Lambda the error's text and type are returned; the process says that it failed."""
    completed = shop.invoke("--event", '{"queue": "unknown"}')

    assert 1 == completed.returncode
    assert "BadEvent" == answer_of(completed)["errorType"]
    assert "'unknown' is unknown" in answer_of(completed)["errorMessage"]


def test_time_that_is_over_ends_the_process(shop: Shop) -> None:
    """A handler that does not come back is ended with its process, as Lambda does it."""
    shop.write(seconds=60)
    shop.push("a")

    completed = shop.invoke("--timeout", "2", LOWKIQ_RESERVE="0.5")

    assert (1, "") == (completed.returncode, completed.stdout)
    assert "did not come back in 2 s" in completed.stderr


def test_without_a_server_one_is_started(shop: Shop, tmp_path: Path) -> None:
    """No Redis URL is needed: jobs and their end are kept in a folder."""
    completed = shop.invoke("--data-dir", str(tmp_path / "data"), LOWKIQ_REDIS_URL="")

    assert 0 == completed.returncode, completed.stderr
    assert (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "app", "sentence"),
    [
        (["--event", "{"], "shop:app", "The event is not JSON"),
        (["--event", "@nowhere.json"], "shop:app", "The event cannot be read from nowhere.json"),
        (
            [],
            None,
            "give --app MODULE:APP, or set LOWKIQ_APP, or write it as app into [tool.lowkiq]",
        ),
        ([], "nowhere:app", "There is no module 'nowhere'"),
    ],
)
def test_what_cannot_work_is_told_in_a_sentence(
    shop: Shop, arguments: list[str], app: str | None, sentence: str
) -> None:
    """A slip on the command line is told, and no handler is called."""
    completed = shop.invoke(*arguments, app=app)

    assert 2 == completed.returncode
    assert sentence in completed.stderr


def test_the_help_teaches(shop: Shop) -> None:
    """The help says what events there are, what the exit codes mean, and gives an example."""
    text = shop.invoke("--help", app=None).stdout

    assert all(word in text for word in ("EVENTS", '{"shard": 3}', "EXIT CODES", "EXAMPLES"))


def test_the_embedded_server_is_found_before_lambda_is_played(tmp_path: Path) -> None:
    """An app that names `embedded:` itself is drained like any other, though Lambda refuses that."""
    with Project(tmp_path) as project:
        prompt = project.prompt()
        prompt.run("Greet.push_many([{'id': 'Ada'}]) and None")

        completed = subprocess.run(
            [sys.executable, "-m", "lowkiq_lambda", "stack", "invoke", "jobs:app", "--timeout", "10"],
            cwd=tmp_path,
            env={**environment(), "LOWKIQ_IDLE": "linger", "LOWKIQ_RESERVE": "7"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert 0 == completed.returncode, completed.stderr
        assert {"done": 1} == answer_of(completed)["counts"]
        assert ["Ada"] == project.greeted()
