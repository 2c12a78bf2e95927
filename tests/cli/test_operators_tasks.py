"""Operators' tasks in a terminal: each by at most two commands, in a pseudo-terminal, as processes of their own."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda import BatchJob, Config, Lowkiq, Rate, Worker
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.screens import terminal_of
from tests.kit.servers import Server
from tests.kit.workers import declare

APP: Final = """
from lowkiq_lambda import Lowkiq, Rate, Worker

app = Lowkiq()
fields = {
    "SyncOrder": {"shards_count": 3, "keep_runs": 1_000},
    "SyncErp": {"max_retry_count": 0},
    "SyncShop": {"tenants": "home"},
    "CallBank": {"rate": Rate(2, per=3_600)},
}
for name, own in fields.items():
    own = {"shards_count": 1, "retry_in": lambda self, count: 3_600, **own}
    app.worker(type(name, (Worker,), {"queue_name": name, "perform_job": lambda self, job: None, **own}))
"""
MOST_COMMANDS: Final = 2
FOUND: Final = "error=bank"
TASKS: Final[dict[str, list[tuple[str, str]]]] = {
    "why is it not done": [("why SyncOrder 4711", "due")],
    "what ran": [("runs SyncOrder --outcome done", "order-7")],
    "which process holds a shard": [("processes", "no process drains")],
    "the most frequent error": [("errors", "the bank did not answer request")],
    "its jobs again, at a rate, after a dry run": [
        (f"requeue SyncErp --filter {FOUND} --rate 10 --dry-run", "would wait again"),
        (f"requeue SyncErp --filter {FOUND} --rate 10 --yes", "requeued 12 jobs"),
    ],
    "kill a poison id, and take it back": [("kill SyncOrder bad-1 --yes", "killed 1 job"), ("undo --yes", "1 ")],
    "pause a tenant": [("pause SyncShop --tenant acme --yes", "paused")],
    "the effect of a limit": [("limits CallBank", "2")],
    "change an entry, and see its times": [
        ("schedules put SyncOrder nightly --id report --cron '0 4 * * *' --yes", "nightly"),
        ("schedules list", r"nightly +0 4 \* \* \* UTC"),
    ],
    "find jobs by their payloads": [("ls SyncOrder --payload customer.id:17", "4711")],
    "compare versions of a payload": [("show SyncOrder 4711", "(?s)10.*12")],
    "stop one job for good": [("cancel SyncOrder 4711 --yes", "1")],
    "how far a task is, and its end": [("tasks", "Enrol"), ("tasks {task} --cancel --yes", "cancelled")],
    "more shards": [("reshard SyncOrder --to 6 --yes", "6")],
    "export": [("ls SyncShop --all --json", '"acme:9"')],
    "share a list": [("open SyncErp --dashboard http://127.0.0.1:8080", "http://127.0.0.1:8080/")],
    "who did what": [("activity", "kill")],
    "be told": [("doctor", "BROKEN|warning"), ("alerts --format prometheus", "alert:")],
}
"""The commands of each, with what they have to say."""


def sync(_worker: Worker, job: BatchJob) -> None:
    """Ids that begin with bad fail."""
    if job.id.startswith("bad"):
        raise TimeoutError(f"the bank did not answer request {job.id} in time")


@pytest.fixture
def task_id(own_server: Server) -> Iterator[str]:
    """Plants a shop on the server; the id of its task."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        body: dict[str, Any] = {"perform_job": sync, "retry_in": lambda _self, _count: 3_600}
        orders: Any = declare(app, "SyncOrder", Notes(), shards_count=3, keep_runs=1_000, **body)
        erp: Any = declare(app, "SyncErp", Notes(), max_retry_count=0, **body)
        shops: Any = declare(app, "SyncShop", Notes(), tenants="home", **body)
        bank: Any = declare(app, "CallBank", Notes(), rate=Rate(2, per=3_600), **body)
        orders.push_many([*({"id": f"order-{number}"} for number in range(9)), {"id": "bad-1"}])
        erp.push_many([{"id": f"bad-{number}"} for number in range(12)])
        bank.push_many([{"id": f"call-{number}"} for number in range(6)])
        task = app.task("Enrol the products")
        with task:
            task.push_many(orders, [{"id": f"row-{number}", "item": f"row {number}"} for number in range(3)])
            task.push_many(orders, [{"id": "row-later", "item": "row 9", "delay": 86_400}])
        app.drain()
        shops.push_many([{"id": "acme:9", "delay": 86_400}])
        for total in (10, 12):
            orders.push("4711", {"customer": {"id": 17}, "total": total}, delay=86_400)
        yield task.id


def test_each_task_takes_at_most_two_commands(own_server: Server, task_id: str, tmp_path: Path) -> None:
    """All of them one after the other, as a person would type them."""
    (tmp_path / "shop_of_operators.py").write_text(APP)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    env = {**os.environ, "PYTHONPATH": path, "LOWKIQ_APP": "shop_of_operators:app", "LOWKIQ_OPERATOR": "olga"}
    env |= {"LOWKIQ_REDIS_URL": own_server.url, "BROWSER": "true"}
    wrong = list[str]()
    for name, commands in TASKS.items():
        assert len(commands) <= MOST_COMMANDS
        for command, words in commands:
            line = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", command.format(task=task_id))]
            with terminal_of([sys.executable, "-m", "lowkiq_lambda", *line], env, columns=160) as screen:
                screen.ended()
                if not re.search(words, screen.text):
                    wrong.append(f"{name}: {command}: {screen.text}")
    assert not wrong
