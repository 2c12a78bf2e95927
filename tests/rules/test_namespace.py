"""A namespace stands before each key and channel: apps on one server share nothing, and the server can see to it."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import lowkiq_lambda
from lowkiq_lambda import Config, ConfigError, Debounce, Lowkiq, NoSuchTask, Rate
from lowkiq_lambda.aws.ticking import ticked
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.local.invoke import LocalContext
from lowkiq_lambda.operate.acts.erasure import erase_queue, has_queue
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.inspect.declared_queues import declared_queues
from lowkiq_lambda.operate.inspect.memory import queue_memory
from lowkiq_lambda.providers.embedded.shared import reset_command
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard import keys
from lowkiq_lambda.store.shard.backend import Call
from lowkiq_lambda.store.shard.duty_claims import DutyKey
from lowkiq_lambda.store.shard.history import MINUTES
from lowkiq_lambda.store.shard.keys import ProcessesRef, QueueRef, ShardRef, TasksRef
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.store.shard.scripts import Argument, Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import closing_app
from tests.kit.confined import RIGHTS, Confined, confining
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of, shard_of

ROOT: Final = Path(lowkiq_lambda.__file__).parents[1]
MAKERS: Final = {
    "ShardRef": 7,
    "QueueRef": 2,
    "TasksRef": 1,
    "ProcessesRef": 1,
    "declaration_key": 2,
    "activity_key": 2,
    "told_key": 2,
    "notification_channel": 2,
    "queue_key": 3,
    "dashboard_key": 2,
    "shards_of": 4,
}
"""What makes keys, and the number of its arguments when the prefix is among them; it may be given by its name, too."""


@pytest.fixture
def confined(server: Server, clock: ManualClock, queue_name: str) -> Iterator[Confined]:
    """Makes such apps on the shared server."""
    with confining(server, clock, queue_name) as made:
        yield made


@pytest.fixture
def app(confined: Confined) -> Lowkiq:
    """One of them."""
    return confined.app("shop")


def test_what_features_keep(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Limits, debounced jobs, merging by the latest payload, a journal, headers, receipts, pauses, and a new count."""
    limited = declare(app, f"{queue_name}-limited", FailingHandler(), max_running=1, rate=Rate(10, per=60.0))
    debounced = declare(app, f"{queue_name}-gathering", FailingHandler(), debounce=Debounce(2.0), merge="latest")
    score = clock.time()
    for worker in (limited, debounced):
        worker.push_many(jobs_of("abc", payload=1, score=score, key="once", headers={"trace": "1"}))
    operate = app.operate
    queue = operate(limited)
    queue.limits.set(max_running=2)
    queue.journal("all")
    queue.pause(5.0)
    queue.resume()
    clock.advance(5.0)

    assert 6 == app.drain()["done"]
    limited.shards_count = 3
    operate(limited).redeclare()
    limited.push_many(jobs_of("d", payload=1))
    assert "d" in [found.id for found in operate.find("d").exact]
    with operate.overview() as seen:
        assert list(seen.queues)
    assert queue_memory(
        app.core.backend, limited.queue_name, app.core.queues.agreed(limited).shards, clock.time()
    ).bytes


def test_tasks(app: Lowkiq, queue_name: str) -> None:
    """A task is followed to its end, listed, and cancelled."""
    worker = declare(app, queue_name, FailingHandler())
    task, other = app.task("import", on_complete=(worker, "all done")), app.task("export")
    task.push_many(worker, jobs_of("ab", payload=1))
    other.push_many(worker, jobs_of("cd", payload=1))
    task.close()
    other.cancel()
    app.drain()

    assert {task.id, other.id} == {each.id for each in app.tasks.list().tasks}
    assert 2 == app.tasks.get(task.id).progress().counts["done"]


def test_schedules_and_housekeeping(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Entries of the code and of run time fire; a tick of a function runs duties, and notes what it has told."""
    worker = declare(app, queue_name, FailingHandler())
    app.every(60.0, worker, id="each minute")
    app.schedules.put("by hand", worker, every=60.0, id="by hand")
    for _ in range(3):
        ticked(app, Settings(metrics="queues"), LocalContext("drain", 60.0), keep=5)
        clock.advance(61.0)

    assert app.drain()["done"]
    assert {"each minute", "by hand"} == {view.entry.id for view in app.schedules.all() if view.entry}
    assert [state for state in app.operate.duties() if state.last_run]


def test_the_dashboard(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Signing in, in vain too, an act on jobs, the list of acts, and signing out."""
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many(jobs_of("ab", payload=1))
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))

    assert 401 == browser.sign_in("not it").status
    browser.come_in(AUTH, OPERATOR, clock.time())
    browser.send("/actions/queue", {"queue": queue_name, "do": "pause"})
    assert [queue_name] == [each["queue"] for each in browser.get("/api/v1/activity").json["activity"]]
    pages = ["/", f"/queue?queue={queue_name}", f"/waiting?queue={queue_name}", f"/job?queue={queue_name}&id=a"]
    assert [200] * 4 == [browser.get(page).status for page in pages]
    assert browser.send("/sign-out").status in {200, 303}


def test_the_doctor_looks_at_its_own_queues(app: Lowkiq, queue_name: str) -> None:
    """Of a server with other queues it names those of the namespace."""
    declare(app, queue_name, FailingHandler()).push_many(jobs_of("a", payload=1))

    findings = check_up(app.operate).findings
    assert queue_name in {finding.about for finding in findings}
    assert [] == [
        finding.about for finding in findings if finding.about.startswith("queue-") and finding.about != queue_name
    ]


def test_notifications(app: Lowkiq, queue_name: str) -> None:
    """Who listens hears the pushes of its own namespace."""
    worker = declare(app, queue_name, FailingHandler())
    shards = app.core.queues.agreed(worker).shards
    with Notifications(app.core.connections.url, shards, timeout=30.0) as subscription:
        subscription.open()
        worker.push_many(jobs_of("a", payload=1))
        eventually(lambda: [*shards] == list(subscription.receive(0.1).shards))


def test_notifications_of_schedules_that_the_script_may_not_send(
    app: Lowkiq, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers let scripts publish nothing: then the tick does, on the channel of its own namespace."""
    worker = declare(app, queue_name, FailingHandler())
    app.every(60.0, worker, id="poll")
    app.schedules.tick()
    shards = app.core.queues.agreed(worker).shards
    run_each = app.core.backend.run_each

    def without_channel(args: Sequence[Argument]) -> list[Argument]:
        return [*args[:7], "", *args[8:]]

    def unpublished(calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """The script's own notification is lost, and it says so."""
        silent = [
            (name, shard, [*args[:7], "", *args[8:]]) if name == "fire" else (name, shard, args)
            for name, shard, args in calls
        ]
        return run_each(silent)

    with Notifications(app.core.connections.url, shards, timeout=30.0) as subscription:
        subscription.open()
        monkeypatch.setattr(app.core.backend, "run_each", unpublished)
        clock.advance(60.0)
        app.schedules.tick()
        eventually(lambda: shard_of(app, worker, "poll") in subscription.receive(0.1).shards)


def test_two_apps_of_equal_queues_see_nothing_of_each_other(confined: Confined, queue_name: str) -> None:
    """Nor does an app without a namespace: jobs, queues, tasks, search, duties, acts and findings are the app's own."""
    shop, stage = confined.app("shop"), confined.app("stage")
    mine, other = (declare(app, queue_name, FailingHandler()) for app in (shop, stage))
    mine.push_many(jobs_of("ab", payload=1))
    task = shop.task("import")
    task.push_many(mine, jobs_of("c", payload=1))

    assert {} == declared_queues(stage.core.backend, 1.0)
    assert {} == stage.drain()
    assert [] == stage.operate.find("a").exact
    assert 0 == stage.operate.metrics()[other.queue_name].length
    assert 0 == len(stage.operate.processes())
    assert () == tuple(stage.tasks.list().tasks)
    with pytest.raises(NoSuchTask):
        stage.tasks.get(task.id).progress()
    assert 3 == shop.drain()["done"]
    assert {queue_name} == {*declared_queues(shop.core.backend, 1.0)}


def test_a_queue_is_erased_in_its_namespace_alone(confined: Confined, server_url: str, queue_name: str) -> None:
    """As `lowkiq reset` does on an embedded server, whose apps may have several."""
    shop, stage = confined.app("shop"), confined.app("stage")
    for app in (shop, stage):
        declare(app, queue_name, FailingHandler()).push_many(jobs_of("ab", payload=1))

    assert not has_queue(server_url, queue_name, None, 30.0)
    erased = erase_queue(server_url, queue_name, shop.config.namespace, 30.0)
    assert erased is not None
    assert 2 == erased.waiting
    assert not has_queue(server_url, queue_name, shop.config.namespace, 30.0)
    assert {"done": 2} == stage.drain()


def test_the_command_that_erases_a_queue_names_it() -> None:
    """Unless the environment of the command has it."""
    config = Config(redis_url="embedded:", namespace="shop")

    assert "lowkiq reset Greet --namespace shop" == reset_command("Greet", config, {})
    assert "lowkiq reset Greet" == reset_command("Greet", config, {"LOWKIQ_NAMESPACE": "shop"})


def test_it_is_read_at_the_first_use(monkeypatch: pytest.MonkeyPatch, server_url: str, queue_name: str) -> None:
    """Workers are declared before anybody knows the namespace: the environment, or a command line, gives it later."""
    with closing_app(Lowkiq()) as app:
        worker = declare(app, queue_name, FailingHandler())
        monkeypatch.setenv("LOWKIQ_NAMESPACE", "of-the-environment")
        assert app.core.queues.of(worker).shards[0].prefix == "of-the-environment:lowkiq"
        app.core.configure(redis_url=server_url, namespace="of-the-command")
        assert app.core.queues.of(worker).shards[0].prefix == "of-the-command:lowkiq"


def test_the_page_has_these_rights() -> None:
    """It names the keys and the channels of a namespace, and the rights that apps of these tests have."""
    page = (ROOT / "docs" / "redis.md").read_text()

    assert f"~shop-staging:* resetchannels &shop-staging:* {RIGHTS}\n" in page


def test_nothing_changes_without_it() -> None:
    """The keys and channels are those of always."""
    shard = ShardRef("a queue", 2, 1)

    assert ("lowkiq:{a%20queue:2:1}:due", "lowkiq:a%20queue:notify") == (shard.keys[0], shard.channel)
    assert "lowkiq:{q}:limits" == QueueRef("q").keys[0]
    assert "lowkiq:{tasks}:task_records" == TasksRef().keys[0]
    assert "lowkiq:{processes}:alive" == ProcessesRef().keys[0]
    assert "lowkiq:{q}:minutes:0" == MINUTES.key("q", 1.0)
    assert DutyKey.of(["q"]).keys[0].startswith("lowkiq:{duties:")
    assert "lowkiq:dashboard:signing" == keys.dashboard_key("signing")


def test_it_stands_before_the_hash_tag() -> None:
    """So a shard's keys lie on one node of a cluster, as without it."""
    shard = ShardRef("q", 2, 1, prefix=keys.key_prefix("shop"))

    assert {"shop:lowkiq:{q:2:1}"} == {key.rpartition(":")[0] for key in shard.keys}
    assert shard != ShardRef("q", 2, 1)
    assert "shop:lowkiq:q:notify" == shard.channel


@pytest.mark.parametrize("namespace", ["", "a b", "a:b", "{a}", "a*", "é", "a\n", "a" * 41, 5])
def test_what_it_may_be(namespace: Any) -> None:
    """Nothing that means something to a key, a hash tag or a pattern; it is said in a sentence."""
    with pytest.raises(ConfigError, match="expected 1 to 40 letters, digits, hyphens, underscores and dots"):
        Config(namespace=namespace)


def test_code_that_makes_a_key_says_the_prefix() -> None:
    """The default is for tests: a call that forgets it would leave the namespace."""
    forgotten = []
    for path in (ROOT / "lowkiq_lambda").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS):
                continue
            is_given = len(call.args) >= MAKERS[call.func.id] or any(each.arg == "prefix" for each in call.keywords)
            if not is_given:
                forgotten.append(f"{path.name}:{call.lineno} {call.func.id}")
    assert [] == forgotten
