"""Records that a hand or a bug has damaged: they are set aside, and the shard goes on."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.store.shard.keys import SHARD_KEYS
from lowkiq_lambda.testing import ManualClock
from tests.chaos.damage import GROUPS, Kind, Patient, Ward
from tests.kit.apps import MakeApp
from tests.kit.deaths import outlive
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare

pytestmark = pytest.mark.unverified("records are damaged by hand")


def shown(lost: bytes) -> str:
    """As an id is shown."""
    return lost.decode(errors="backslashreplace")


DRAINS = 6
"""Among them one that finds what another has left to the end of its lease."""


@pytest.fixture
def patient(make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str) -> Patient:
    """A shard with jobs in every state."""
    return Patient(make_app(), clock, server.admin, queue_name).fill()


def complaints(patient: Patient, kind: Kind, told: Sequence[Mapping[str, Any]], counted: int) -> list[object]:
    """What is not as it must be once a damaged shard has been drained; `told` by the log, `counted` by the metrics."""
    ruined = {payload for payload in patient.pushed if payload.split()[0] in kind.ruined}
    kept = patient.queue.damaged()
    said = {
        (one["key"], one["id"])
        for one in told
        if one.get("became") == "set aside" and one["queue"] == patient.queue_name
    }
    found = [
        ("not performed", patient.waiting() - ruined - patient.done),
        (
            "not kept",
            [lost for lost in kind.lost if not any(lost in one.data or shown(lost) in one.id for one in kept)],
        ),
        ("told or kept only", {(one.key, one.id) for one in kept} ^ said),
        ("not counted", max(0, len(kept) - counted)),
        ("damaged again", patient.queue.repair()),
    ]
    return [complaint for complaint in found if complaint[1]]


@pytest.mark.parametrize("kinds", GROUPS.values(), ids=GROUPS)
def test_a_damaged_record_stops_no_shard(
    patient: Patient, kinds: Sequence[Kind], caplog: pytest.LogCaptureFixture
) -> None:
    """P2, P6: whatever is damaged, all that is sound is done; what is not lies aside with its bytes, and is told of."""
    ward = Ward(patient, kinds)
    for one in ward.all:
        one.is_well = True
    with caplog.at_level(logging.WARNING):
        for one in ward.all:
            one.push_late()
        for _ in range(DRAINS):
            patient.drain()
        ward.look()
        for one in ward.all:
            one.queue.repair()
            one.push_after()
        patient.drain()

    assert patient.waiting() == patient.done
    told, numbers = [vars(record) for record in caplog.records], patient.app.operate.metrics()
    found = {kind.name: complaints(one, kind, told, numbers[one.queue_name].damaged) for kind, one in ward.patients}
    assert {} == {name: complaint for name, complaint in found.items() if complaint}


@pytest.mark.parametrize("group", mostly_nightly(GROUPS, *[*GROUPS][:4]))
def test_people_can_look_at_a_damaged_shard(patient: Patient, group: str) -> None:
    """Whatever is damaged, each list, number and action answers, where no drain has been there before."""
    ward = Ward(patient, GROUPS[group])

    ward.look()
    for _, one in ward.patients:
        one.act()

    ward.look()


def test_a_list_answers_where_its_script_is_new_to_the_server(patient: Patient) -> None:
    """The first run of a script may be the one that meets damage: it is set aside, and the list is read again."""
    key = patient.app.core.queues.agreed(patient.worker).shards[0].key("flight")
    patient.admin.hset(key, "suspect-1", b"garbage")
    patient.admin.script_flush()

    shown = [job.id for job in patient.queue.in_flight.list()]

    assert "suspect-1" not in shown
    assert ["suspect-1"] == [record.id for record in patient.queue.damaged() if b"garbage" == record.data]


def test_a_push_that_meets_damage_is_applied_once(patient: Patient) -> None:
    """P2: what is new in it, and what its ids have waiting, is there once, also where equal payloads are kept."""
    performed = Notes()
    worker = declare(patient.app, f"{patient.queue_name} never", performed, merge="never", batch_size=10)
    jobs = [{"id": job_id, "payload": "one"} for job_id in ("new", "old")]
    worker.push_many(jobs[1:])
    key = patient.app.core.queues.agreed(worker).shards[0].key("box")
    patient.admin.rpush(key, "alien")

    worker.push_many(jobs)

    patient.drain()
    assert [{"new": ["one"], "old": ["one", "one"]}] == performed.batches


@pytest.mark.parametrize("abandoned", [False, True])
def test_a_recovery_that_meets_damage_is_made_as_without_it(patient: Patient, *, abandoned: bool) -> None:
    """P6: a dead holder is noted once, under its own nonce, and one that gave up itself is not noted."""
    meta, key = patient.key("meta"), patient.key("trouble")
    dead: Any = patient.admin.hget(meta, "nonce")
    packed: Any = patient.admin.hget(key, "suspect-1")
    patient.admin.hset(key, "suspect-1", msgspec.msgpack.encode({**msgspec.msgpack.decode(packed), "at_risk": True}))
    if abandoned:
        patient.admin.hset(meta, "abandoned", 1)
    patient.admin.delete(patient.key("seen"))
    patient.admin.rpush(patient.key("seen"), "alien")

    outlive(patient.app, patient.clock, patient.worker)
    patient.die_before_start()

    (aside,) = patient.queue.damaged()
    assert "seen" == aside.key
    noted: Any = patient.admin.hget(key, "suspect-1")
    trouble = msgspec.msgpack.decode(noted)
    assert (None if abandoned else [dead.decode()]) == trouble.get("halvings")
    assert trouble["abandoned"]


@pytest.mark.parametrize("lease", ["no end", "another type"])
def test_a_damaged_lease_holds_a_shard_for_one_ttl(patient: Patient, clock: ManualClock, lease: str) -> None:
    """P1, P6: what says nothing of an end ends after one TTL, not at once and not never."""
    clock.advance(100.0)
    key = patient.key("lease")
    patient.admin.delete(key)
    if lease == "no end":
        patient.admin.set(key, "1")
    else:
        patient.admin.rpush(key, "1")
    patient.is_well = True

    patient.app.drain()

    assert set() == patient.done
    assert 0 < patient.admin.pttl(key) <= 30_000
    patient.drain()
    assert patient.waiting() == patient.done


@pytest.mark.parametrize("where", ["until", "lease"])
def test_an_end_that_a_hand_wrote_where_nobody_has_held_the_shard_is_damage(
    app: Lowkiq, clock: ManualClock, server: Server, queue_name: str, where: str
) -> None:
    """P7: no lease of anybody can end so late: the shard is free after one TTL, and people hear of it."""
    performed = Notes()
    worker = declare(app, queue_name, performed)
    worker.push_many([{"id": "a", "payload": 1}])
    (shard,) = app.core.queues.agreed(worker).shards
    if where == "until":
        server.admin.hset(shard.key("meta"), "until", clock.time() + 1e9)
    else:
        server.admin.set(shard.key("lease"), "1", px=10**12)

    app.drain()

    assert [] == performed.batches
    assert server.admin.pttl(shard.key("lease")) <= 1_000 * app.config.lease_ttl
    assert app.config.lease_ttl >= float(server.admin.hget(shard.key("meta"), "until") or 0) - clock.time()
    assert (["until"] if where == "until" else []) == [one.id for one in app.operate(worker).damaged()]
    server.admin.delete(shard.key("lease"))
    clock.advance(app.config.lease_ttl)
    app.drain()
    assert [{"a": [1]}] == performed.batches


def test_a_repair_finds_an_end_that_nobody_can_have_written(
    app: Lowkiq, clock: ManualClock, server: Server, queue_name: str
) -> None:
    """It is one record, told and kept; one that a holder of the caller's lease time could have written is none."""
    worker = declare(app, queue_name, Notes())
    worker.push_many([{"id": "a", "payload": 1}])
    meta = app.core.queues.agreed(worker).shards[0].key("meta")
    server.admin.hset(meta, "until", clock.time() + app.config.lease_ttl)
    assert 0 == app.operate(worker).repair()

    server.admin.hset(meta, "until", clock.time() + app.config.lease_ttl + 2.0)

    assert 1 == app.operate(worker).repair()
    assert clock.time() + app.config.lease_ttl == float(server.admin.hget(meta, "until") or 0)
    assert 0 == app.operate(worker).repair()


def test_what_is_set_aside_is_bounded(patient: Patient) -> None:
    """Of each shard the last thousand records are kept, however many are damaged."""
    patient.admin.zadd(patient.key("due"), {f"alone-{number}": 1.0 for number in range(1_500)})

    assert 1_500 == patient.queue.repair()
    kept = patient.queue.damaged()
    assert 1_000 == len(kept)
    assert 1_500 == patient.app.operate.metrics()[patient.queue_name].damaged == max(one.number for one in kept)
    assert 400 == patient.queue.delete_damaged(last=min(one.number for one in kept) + 399)
    assert 600 == patient.queue.delete_damaged()
    assert [] == patient.queue.damaged()


def test_a_sound_shard_is_not_changed_by_a_repair(patient: Patient) -> None:
    """Whoever repairs a shard that is sound changes nothing, whatever its jobs are at."""
    before = {name: patient.admin.dump(patient.key(name)) for name in SHARD_KEYS if name not in {"meta", "lease"}}

    assert 0 == patient.queue.repair()

    assert before == {name: patient.admin.dump(patient.key(name)) for name in before}


def test_the_bytes_of_the_morgue_are_counted_anew(patient: Patient) -> None:
    """Where their count is damaged it is what it was."""
    before = patient.admin.hget(patient.key("meta"), "morgue_bytes")
    patient.admin.hset(patient.key("meta"), "morgue_bytes", "many")

    assert 1 == patient.queue.repair()

    assert before == patient.admin.hget(patient.key("meta"), "morgue_bytes")
