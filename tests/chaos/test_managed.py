"""A managed cache: TLS, a cluster, a user whose password is a token, and limits of its own."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import pytest
from redis.crc import key_slot

from lowkiq_lambda import Batch, Config, Lowkiq, Rate
from lowkiq_lambda.base.errors import BackendDenied
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.providers.aws.iam import RENEWED_AFTER, IamCredentials, Keychain
from lowkiq_lambda.store.server.health import check_server
from lowkiq_lambda.store.shard import backend, reader
from lowkiq_lambda.store.shard.admitting import visits_running
from lowkiq_lambda.store.shard.keys import QueueRef, ShardRef
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.store.shard.scripts import Script, script
from lowkiq_lambda.testing import ManualClock
from tests.chaos.everything import SCRIPTS, look_at_everything
from tests.chaos.shard_life import ShardLife
from tests.kit.apps import closing_app
from tests.kit.servers import ManagedCache
from tests.kit.servers.monitor import Asked, Monitor
from tests.kit.waiting import eventually
from tests.kit.workers import declare

PAGE: Final = Path(__file__).parents[2] / "docs" / "elasticache.md"
MOST_ARGUMENTS: Final = 3_999
JOBS: Final = 10_000
ENVIRON: Final = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
CHANCE: Final = {"time", "randomkey", "srandmember", "spop", "hrandfield", "zrandmember"}


class Account:
    """A user of the cache, and the side of AWS that knows which token is good."""

    def __init__(self, cache: ManagedCache) -> None:
        self._cache = cache
        self.clock = ManualClock()
        self.user = f"user-{uuid4().hex}"
        self.credentials = IamCredentials(
            user=self.user, cache="jobs", serverless=True, keychain=Keychain(ENVIRON), clock=self.clock
        )
        self.let_in()

    def let_in(self) -> str:
        """From now on the cache takes the token of now and no other."""
        user, token = self.credentials()
        self._cache.let_in(user, token, documented_rights())
        return token

    def connections(self) -> list[str]:
        """The ids of the user's connections."""
        return self._cache.connections(self.user)

    def cut(self) -> None:
        """End all connections, as the service does after twelve hours."""
        self._cache.proxy.cut()
        eventually(lambda: not self.connections())

    def refusals(self) -> list[str]:
        """What the cache's rules did not let the user do."""
        return [str(entry["object"]) for entry in self._cache.admin.acl_log() if entry["username"] == self.user]


def documented_rights() -> str:
    """The rights that the docs tell to give."""
    (rights,) = re.findall(r"^on ~lowkiq:.*$", PAGE.read_text(), re.MULTILINE)
    return str(rights)


@pytest.fixture
def account(managed_cache: ManagedCache) -> Account:
    """A user of the cache."""
    return Account(managed_cache)


@pytest.fixture
def app(managed_cache: ManagedCache, account: Account) -> Iterator[Lowkiq]:
    """An app that goes to the cache as that user."""
    with closing_app(Lowkiq(Config(redis_url=managed_cache.url, credentials=account.credentials))) as opened:
        yield opened


def declared(app: Lowkiq, queue_name: str, **options: Any) -> FunctionWorker:
    """A worker that fails the ids which begin with "bad"."""

    def handle(batch: Batch) -> None:
        for job_id in batch:
            if job_id.startswith("bad"):
                batch.fail(job_id, "bad")

    return app.worker(queue_name=queue_name, **options)(handle)


def test_everything_works_for_that_user(
    managed_cache: ManagedCache, account: Account, app: Lowkiq, queue_name: str
) -> None:
    """Push, drain, look, act and count, with the rights that the docs name: the cache refuses nothing of it."""
    worker = declared(app, queue_name, shards_count=3, max_retry_count=0)
    good, bad = ([f"{kind} {number}" for number in range(50)] for kind in ("good", "bad"))
    managed_cache.admin.config_resetstat()

    shards = app.core.drains.drainer.shards()
    with Notifications(managed_cache.url, shards, timeout=5.0, credentials=account.credentials) as subscription:
        subscription.open()
        worker.push_many([{"id": job_id, "payload": 1} for job_id in (*good, *bad)])
        assert set(eventually(lambda: subscription.receive(0.1).shards)) == set(shards)
    assert 100 == len(app.operate(worker).waiting.list("id"))
    assert 50 == app.drain()["failed"]
    assert 50 == app.operate.stats()["total"]["morgue_length"]
    assert 50 == len(app.operate(worker).morgue.list())
    assert 50 == app.operate(worker).morgue.requeue(everything=True)
    assert 50 == app.operate(worker).waiting.delete(bad)
    assert [] == check_server(app.core.backend.client)

    assert [] == account.refusals()
    assert account.connections()
    used = {name.removeprefix("cmdstat_") for name in managed_cache.admin.info("commandstats")}
    assert not used & {"select", "multi", "exec", "watch", "config|get"}


def test_the_next_token_is_for_the_next_connection(account: Account, app: Lowkiq, queue_name: str) -> None:
    """Who is signed in stays so when the token ends; who was cut off comes back with a new one, and misses nothing."""
    worker = declared(app, queue_name, shards_count=2)
    worker.push_many([{"id": "a", "payload": 1}])
    before = account.connections()
    first = account.let_in()
    account.clock.advance(RENEWED_AFTER)

    second = account.let_in()
    worker.push_many([{"id": "b", "payload": 1}])
    assert before == account.connections()

    account.cut()
    worker.push_many([{"id": "c", "payload": 1}])
    assert {"done": 3} == app.drain()
    assert first != second
    assert not set(before) & set(account.connections())


def test_a_token_that_is_not_taken_is_told(account: Account, app: Lowkiq, queue_name: str) -> None:
    """A role that may not connect, or a wrong clock, is an error at once which says so and shows no token."""
    worker = declared(app, queue_name)
    worker.push_many([{"id": "a", "payload": 1}])
    account.let_in()
    account.clock.advance(RENEWED_AFTER)
    account.cut()

    with pytest.raises(BackendDenied, match="invalid username-password pair") as raised:
        worker.push_many([{"id": "b", "payload": 1}])

    assert "X-Amz" not in str(raised.value)
    account.let_in()
    worker.push_many([{"id": "b", "payload": 1}])
    assert {"done": 2} == app.drain()


def test_no_call_has_too_many_arguments(managed_cache: ManagedCache, app: Lowkiq, queue_name: str) -> None:
    """Whatever is pushed, drained, looked at and done, no command has more than 3,999 arguments, by scripts neither."""
    worker = declared(app, queue_name, shards_count=2, batch_size=1_000, max_retry_count=0)
    names = [f"{'good' if number % 4 else 'bad'} {number}" for number in range(JOBS)]
    # One of the two shards has more ids than a call may name, and the other few.
    ids = [name for number, name in enumerate(names) if number % 20 == 0 or shard_for(name, 2) == 0]
    with Monitor(managed_cache.node) as monitor:
        worker.push_many([{"id": job_id, "payload": "x" * (n**3 % 4_001)} for n, job_id in enumerate(ids)])
        worker.push_many([{"id": "many", "payload": number} for number in range(5_000)])
        see_all_pages(app, worker)
        drain_all(app, worker)
        see_all_pages(app, worker)
        queue = app.operate(worker)
        assert queue.morgue.requeue(everything=True)
        see_all_pages(app, worker)
        queue.waiting.run_now(everything=True)
        queue.waiting.kill(everything=True)
        queue.waiting.delete(filter={"least_count": "0"})
        queue.waiting.delete(ids)
        queue.morgue.delete(everything=True)
        app.operate(worker).waiting.fetch(ids)
        asked = monitor.heard()

    assert 3_000 < max(each.size for each in asked) <= MOST_ARGUMENTS
    check_scripts(asked)


def drain_all(app: Lowkiq, worker: FunctionWorker) -> None:
    """Until nothing waits."""
    while app.operate.stats()["by_worker"][worker.worker.queue_name]["length"]:
        app.drain()


def see_all_pages(app: Lowkiq, worker: FunctionWorker) -> None:
    """Everything that a dashboard can show, in the largest pages that there are."""
    queue = app.operate(worker)
    for look in (
        partial(queue.waiting.list, "id"),
        queue.waiting.list,
        partial(queue.waiting.list, "retry_count"),
        partial(queue.morgue.list, "id"),
        queue.morgue.list,
    ):
        page = look(limit=10_000)
        while page.next:
            page = look(limit=10_000, after=page.next)
    queue.in_flight.list()
    app.operate.stats()


def test_every_script_names_its_keys(
    managed_cache: ManagedCache, account: Account, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is given keys of one slot and touches no other, takes no time and throws no dice."""
    called = set[str]()

    def noted(name: str, groups: tuple[str, ...] = ()) -> Script:
        called.add(name)
        return script(name, groups)

    for module in (backend, reader):
        monkeypatch.setattr(module, "script", noted)
    shard = ShardRef(queue_name, 1, 0)
    user, token = account.credentials()
    url = managed_cache.url.replace("://", f"://{user}:{quote(token, safe='')}@")
    with Monitor(managed_cache.node) as monitor, ShardLife(url, managed_cache.node, shard) as life:
        for step in life.steps():
            step.call()
            look_at_everything(life.holders.backend, shard)
        asked = monitor.heard()

    assert called == SCRIPTS
    check_scripts(asked)


def test_scripts_of_a_limited_queue_name_their_keys(managed_cache: ManagedCache, app: Lowkiq, queue_name: str) -> None:
    """The same for what is kept of the queue, in a slot of its own."""
    worker = declared(app, queue_name, shards_count=1, max_running=1, rate=Rate(10, per=60))
    with Monitor(managed_cache.node) as monitor:
        worker.push_many([{"id": "a"}])
        app.drain()
        running = visits_running(app.core.backend, queue_name, 0.0)
        asked = monitor.heard()

    first_keys = {each.words[3].decode() for each in asked if each.name in {"eval", "evalsha"}}
    assert (0, 0.0) == running
    assert QueueRef(queue_name).key("limits") in first_keys
    check_scripts(asked)


def test_scripts_of_tasks_name_their_keys(managed_cache: ManagedCache, app: Lowkiq, queue_name: str) -> None:
    """The same for tasks, whose records have a slot of their own."""
    task = app.task("export")
    called: list[bool] = []

    def handler(batch: Batch) -> None:
        # A closed task asks whether an item of it runs.
        called.append(
            bool(task.push_many(worker, [{"id": f"child of {job_id}"} for job_id in batch if len(job_id) == 1]))
        )

    worker = declare(app, queue_name, handler, batch_size=1)
    with Monitor(managed_cache.node) as monitor:
        task.push_many(worker, [{"id": "a", "item": "row 1"}])
        task.close()
        app.drain()
        task.items()
        cancelled = app.task("cancelled")
        cancelled.push_many(worker, [{"id": "b"}])
        operations = cancelled._operations
        items = operations.items_of(operations.records.get(cancelled.id))
        verified = items.verify(lambda: 1.0)
        cancelled.cancel()
        items.forget(10, lambda: 1.0)
        app.tasks.upkeep(lambda: 1.0)
        names = [one.name for one in app.tasks.list().tasks]
        asked = monitor.heard()

    assert ("completed", [True, False], (0, True)) == (task.progress().state, called, verified)
    assert {"cancelled", "export"} <= {*names}
    check_scripts(asked)


def check_scripts(asked: list[Asked]) -> None:
    """AssertionError where a script has no key, keys of several slots, touches others, or is not deterministic."""
    given: set[bytes] = set()
    for each in asked:
        assert 0 == each.database
        if each.name in {"eval", "evalsha"}:
            given = set(each.words[3 : 3 + int(each.words[2])])
            assert 1 == len({key_slot(key) for key in given})
        elif each.name == "publish":
            # A channel is no key: nothing is kept under it, and every node of a cluster takes the message.
            assert each.first.endswith(b":notify")
        elif each.by_script:
            assert each.name not in CHANCE
            assert each.first in given
