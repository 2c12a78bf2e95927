"""Every script, while the network, the server's memory or its rights are against it."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.base.errors import BackendDenied, BackendFull
from lowkiq_lambda.operate.acts.shards import set_pause
from lowkiq_lambda.store.shard import backend, reader
from lowkiq_lambda.store.shard.keys import EXPIRY, HEADERS, TENANTS, UNDO, ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Script, script
from tests.chaos.everything import OF_TENANTS, SCRIPTS, look_at_everything
from tests.chaos.shard_life import ShardLife, Step
from tests.chaos.steps import is_empty
from tests.kit.examples import mostly_nightly
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.stored import State, stored

STEPS = 50


def take_all(life: ShardLife, before: Callable[[int, Step], object] = lambda _number, _step: None) -> list[object]:
    """Take all steps; their answers."""
    answers = []
    for number, step in enumerate(life.steps()):
        before(number, step)
        answers.append(step.call())
    return answers


def undisturbed(server: Server, shard: ShardRef) -> tuple[list[object], State]:
    """The answers without any fault, and the state at its end."""
    with ShardLife(server.url, server, shard) as life:
        return take_all(life), stored(server.admin, shard)


def test_the_life_of_a_shard_ends_without_jobs(server: Server, queue_name: str) -> None:
    """What the other tests compare with: all was performed, dead or deleted, and nothing is left."""
    _, end = undisturbed(server, ShardRef(queue_name, 1, 0))
    assert is_empty(end)
    assert {} == end["morgue"] == end["trouble"] == end["groups"] == end["errors"] == end["failures"]
    assert 1 == end["counters"]["retried"] == end["counters"]["dead"]


@pytest.mark.parametrize("lost", mostly_nightly(["closed", "silent"], "closed"))
@pytest.mark.parametrize("number", range(STEPS))
def test_a_lost_reply_changes_nothing(
    server: Server, queue_name: str, fault_proxy: FaultProxy, number: int, lost: str
) -> None:
    """E-16, E-44: a call whose reply is lost is sent again, applied once, and answered as the first time."""
    expected = undisturbed(server, ShardRef(queue_name, 1, 0))
    shard = ShardRef(f"{queue_name} again", 1, 0)

    def lose(at: int, step: Step) -> None:
        if at == number:
            lose_reply = fault_proxy.drop_reply_after if lost == "closed" else fault_proxy.hang_reply_after
            lose_reply(script(step.script, step.features).sha.encode())

    with ShardLife(fault_proxy.url, server, shard, timeout=0.2) as life:
        answers = take_all(life, lose)
    fault_proxy.wait_dropped()
    assert STEPS == len(answers)
    assert expected == (answers, stored(server.admin, shard))


def test_scripts_forgotten_before_each_call_cost_nothing(
    server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-36, LB-4: SCRIPT FLUSH between any two calls, in the middle of a claim too, loses nothing."""
    expected = undisturbed(server, ShardRef(queue_name, 1, 0))
    shard = ShardRef(f"{queue_name} again", 1, 0)

    def flushed(name: str, groups: tuple[str, ...] = ()) -> Script:
        server.admin.script_flush()
        return script(name, groups)

    for module in (backend, reader):
        monkeypatch.setattr(module, "script", flushed)
    with ShardLife(server.url, server, shard) as life:
        assert expected == (take_all(life), stored(server.admin, shard))


@pytest.mark.parametrize("features", [(), (TENANTS,), (HEADERS,), (EXPIRY,)])
def test_every_script_touches_only_keys_of_its_shard(
    make_server: MakeServer, queue_name: str, monkeypatch: pytest.MonkeyPatch, features: tuple[str, ...]
) -> None:
    """Each of them runs as a user who may touch nothing else, so nothing depends on a key that was not declared."""
    server, shard, called = make_server(), ShardRef(queue_name, 1, 0, features), set[str]()
    url = server.add_user("shard", "+@all", *(f"~{key}" for key in shard.using((*features, UNDO)).keys))

    def noted(name: str, groups: tuple[str, ...] = ()) -> Script:
        called.add(name)
        return script(name, groups)

    for module in (backend, reader):
        monkeypatch.setattr(module, "script", noted)
    with ShardLife(url, server, shard) as life:
        for step in life.steps():
            step.call()
            assert step.script in called
            look_at_everything(life.holders.backend, shard)
        with pytest.raises(BackendDenied):
            life.holders.backend.run("snapshot", ShardRef(f"{queue_name} other", 1, 0), [], retry_for=0.0)
        if TENANTS in features:
            set_pause(ShardReader(life.holders.backend, 0.0, only(shard)), "", lambda now: now)
    assert SCRIPTS | (OF_TENANTS if TENANTS in features else set()) == called


@pytest.mark.parametrize("features", [(), (HEADERS,), (EXPIRY,)])
def test_a_full_server_refuses_pushes_and_nothing_else(
    make_server: MakeServer, queue_name: str, features: tuple[str, ...]
) -> None:
    """E-41: the push says so and has written nothing; drain, retry, death, recovery and operators go on."""
    server, shard = make_server(), ShardRef(queue_name, 1, 0, features)
    expected = undisturbed(server, shard)
    server.admin.flushall()

    with ShardLife(server.url, server, shard) as life:
        answers: list[object] = []
        for step in life.steps():
            is_push = step.script == "enqueue"
            if is_push and answers:
                before = stored(server.admin, shard)
                with pytest.raises(BackendFull):
                    step.call()
                assert before == stored(server.admin, shard)
            server.admin.config_set("maxmemory", 0 if is_push else 1)
            answers.append(step.call())
        assert expected == (answers, stored(server.admin, shard))
