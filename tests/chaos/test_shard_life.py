"""Every script, while the network, the server's memory or its rights are against it."""

from collections.abc import Callable
from typing import TypeAlias
from uuid import uuid4

import pytest

from lowkiq_lambda.base.errors import BackendDenied, BackendFull
from lowkiq_lambda.operate.acts.shards import set_pause
from lowkiq_lambda.store.shard import backend, reader
from lowkiq_lambda.store.shard.keys import EXPIRY, HEADERS, REQUESTS, TENANTS, UNDO, ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Script, script
from tests.chaos.everything import OF_TENANTS, SCRIPTS, look_at_everything
from tests.chaos.shard_life import ShardLife, Step
from tests.chaos.steps import is_empty
from tests.kit.examples import mostly_nightly
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.stored import State, stored

STEPS = 81


def nothing(_number: int, _step: Step) -> None:
    """Happens before a step."""


def take_all(life: ShardLife, before: Callable[[int, Step], object] = nothing) -> list[object]:
    """Take all steps; their answers."""
    answers = []
    for number, step in enumerate(life.steps()):
        before(number, step)
        answers.append(step.call())
    return answers


End: TypeAlias = tuple[list[object], State, list[tuple[str, int, int]]]
"""The answers of all steps, the state at the end, and what can be undone then."""


def lived(life: ShardLife, server: Server, shard: ShardRef, before: Callable[[int, Step], object] = nothing) -> End:
    """All steps are taken."""
    return take_all(life, before), stored(server.admin, shard), life.undoable()


def undisturbed(server: Server, shard: ShardRef) -> End:
    """The end without any fault."""
    with ShardLife(server.url, server, shard) as life:
        return lived(life, server, shard)


@pytest.fixture(scope="module")
def expected(server: Server) -> End:
    """The end without any fault."""
    return undisturbed(server, ShardRef(f"undisturbed-{uuid4().hex}", 1, 0))


def test_the_life_of_a_shard_ends_without_jobs(expected: End) -> None:
    """What the other tests compare with: all was performed, dead or deleted, and nothing is left."""
    _, end, _ = expected
    assert is_empty(end)
    assert {} == end["morgue"] == end["trouble"] == end["groups"] == end["errors"] == end["failures"]
    assert (2, 1) == (end["counters"]["retried"], end["counters"]["dead"])


@pytest.mark.parametrize("lost", mostly_nightly(["closed", "silent"], "closed"))
@pytest.mark.parametrize("number", range(STEPS))
def test_a_lost_reply_changes_nothing(
    server: Server, expected: End, fault_proxy: FaultProxy, number: int, lost: str
) -> None:
    """E-16, E-44: a call whose reply is lost is sent again, applied once, and answered as the first time."""
    shard = ShardRef(f"disturbed-{uuid4().hex}", 1, 0)

    def lose(at: int, step: Step) -> None:
        if at == number:
            lose_reply = fault_proxy.drop_reply_after if lost == "closed" else fault_proxy.hang_reply_after
            used = life.holders.backend.as_used(shard.using(step.features))
            lose_reply(script(step.script, used.features).sha.encode())

    with ShardLife(fault_proxy.url, server, shard, timeout=0.2) as life:
        end = lived(life, server, shard, lose)
    fault_proxy.wait_dropped()
    assert STEPS == len(end[0])
    assert expected == end


def test_scripts_forgotten_before_each_call_cost_nothing(
    server: Server, expected: End, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-36, LB-4: SCRIPT FLUSH between any two calls, in the middle of a claim too, loses nothing."""
    shard = ShardRef(queue_name, 1, 0)

    def flushed(name: str, groups: tuple[str, ...] = ()) -> Script:
        server.admin.script_flush()
        return script(name, groups)

    for module in (backend, reader):
        monkeypatch.setattr(module, "script", flushed)
    with ShardLife(server.url, server, shard) as life:
        assert expected == lived(life, server, shard)


@pytest.mark.parametrize("features", [(), (TENANTS,), (HEADERS,), (EXPIRY,)])
def test_every_script_touches_only_keys_of_its_shard(
    make_server: MakeServer, queue_name: str, monkeypatch: pytest.MonkeyPatch, features: tuple[str, ...]
) -> None:
    """Each of them runs as a user who may touch nothing else, so nothing depends on a key that was not declared."""
    server, shard, called = make_server(), ShardRef(queue_name, 1, 0, features), set[str]()
    url = server.add_user("shard", "+@all", *(f"~{key}" for key in shard.using((*features, REQUESTS, UNDO)).keys))

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
            if step.script == "enqueue" and answers:
                before = stored(server.admin, shard)
                with pytest.raises(BackendFull):
                    step.call()
                assert before == stored(server.admin, shard)
            server.admin.config_set("maxmemory", 0 if step.needs_room else 1)
            answers.append(step.call())
        assert expected[:2] == (answers, stored(server.admin, shard))
