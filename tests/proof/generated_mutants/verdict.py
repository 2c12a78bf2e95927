"""What is wrong with a run of a simulated shard: by its history, by what is left, and by what a claim left out."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lowkiq_lambda.jobs.job import PLACE, Delivery
from lowkiq_lambda.store.shard.session import ClaimLimits
from tests.kit.tracking import check_items
from tests.proof.generated_mutants.accounts import CRASHES, number_of
from tests.proof.generated_mutants.features import RETRIES, Workload
from tests.proof.history import Event, Terms, check

if TYPE_CHECKING:
    from tests.proof.generated_mutants.world import ShardWorld

JUST: Final = 5.0
"""Seconds that a call may have been tried again: what is due since then was not when it was made first."""
HEADS: Final = 60
"""Bytes that a claim may count beside payloads: the heads of a few records."""
LAST_TIME: Final = " for the last time"
"""Ends the error of a failure without a retry."""
FEW: Final = 8
"""An id with so many payloads is handed over as a whole, but for its chunks."""
SETTLING: Final = 1.5
"""Of the time of a history, which counts events: harm right behind an outcome comes before it is durable."""
TERMS: Final = Terms(looked=True, settling=SETTLING, acknowledged=True, failing="bad", retries=RETRIES)
TERMS_OF_HEADS: Final = Terms(looked=True, settling=SETTLING, acknowledged=True, failing="bad")
"""What follows a head is not tried as often."""


def judged(events: Sequence[Event], workload: Workload) -> list[str]:
    """What the history of a run breaks."""
    if workload.declared.get("merge") == "latest":
        return [*_of_newest(events)]
    terms = TERMS if workload.dead_head == "skip" else TERMS_OF_HEADS
    return check(_without_dying(events, supersedes=workload.dead_head == "latest"), terms).words


def look_at_claim(world: "ShardWorld", claimed: Sequence[Delivery], limits: ClaimLimits) -> None:
    """What is due and was not claimed had no room, and comes later by its time. Tenants take turns instead."""
    if "tenants" in world.workload.declared or any(one.progress for one in claimed):
        return
    state, sizes = world.stored(), [len(entry) for one in claimed for entry in one.entries]
    waiting = sorted((job[1], job_id) for job_id, job in state["waiting"].items() if not job[5])
    others = [(at, job_id) for at, job_id in waiting if job_id not in world.live_ids]
    if state["suspects"] or not others or others[0][0] > world.clock.time() - JUST:
        return
    due_at, job_id = others[0]
    assert due_at >= max(one.due_at for one in claimed), f"{job_id} is due since {due_at}, and others were claimed"
    payloads = [PLACE + len(entry.payload.encode()) for entry in state["waiting"][job_id][0]]
    # A few payloads are not cut in two by the room of a claim.
    least = payloads[: limits.chunk or FEW] if len(payloads) <= FEW else payloads[:1]
    has_room = (
        len(claimed) < limits.ids
        and len(sizes) + len(least) <= limits.payloads
        and sum(sizes) + sum(least) + HEADS * len(least) <= limits.bytes
    )
    assert not has_room, f"there was room for {job_id}, which is due"


def look_at_rest(world: "ShardWorld") -> None:
    """Nothing is left but what is dead, or blocked. Raises AssertionError."""
    state = world.stored()
    blocked = world.workload.dead_head == "block"
    for name in ("flight", "suspects", "groups", *(() if blocked else ("waiting", "errors", "trouble"))):
        assert not state[name], f"{name} is left: {state[name]}"
    for job_id, job in state["waiting"].items():
        # What a started job was handed, or a blocked head, stands before what came later.
        world.write("left", job_id, [number_of(entry) for entry in (*job[5], *job[0])], outcome="waiting")
    ran = {number for event in world.events if event.what == "begin" for number in event.numbers}
    for job_id, dead in state["morgue"].items():
        numbers = {number_of(entry) for entry in dead[2]}
        followers = numbers - ran if world.workload.dead_head == "drop" else set[int]()
        world.write("left", job_id, sorted(numbers - followers), outcome="dead")
        # They did not fail, and go with their head.
        world.write("left", job_id, sorted(followers), outcome="waiting")
    assert not state["lease"][1], "nobody is there, and the lease lasts"
    assert not state["lease"][2], "nobody is there, and there is a key of a lease"
    _look_at_dead(world, state)
    _look_at_blocked(world, state)
    for word in ("done", "retried", "suspected", "rejected"):
        count, known = state["counters"][word], world.account.acknowledged[word]
        assert known <= count <= known + world.account.unknown, f"{word} is {count}, and was told {known} times"
    if world.workload.tracked:
        _look_at_items(world, state)


def _look_at_dead(world: "ShardWorld", state: dict[str, Any]) -> None:
    dead = {number_of(entry) for each in state["morgue"].values() for entry in each[2]}
    for job_id, (_, error, entries) in state["morgue"].items():
        for entry in entries:
            deaths = world.account.lone_deaths[number_of(entry)]
            if job_id.startswith("kill") and world.workload.dead_head == "skip":
                assert deaths == CRASHES, f"{job_id} lies in the morgue after {deaths} deaths"
        texts = {"crashed", *(f"{number} failed" for number in world.pushed)}
        assert error.removesuffix(LAST_TIME) in texts, f"{job_id} lies in the morgue with the error {error!r}"
        assert job_id in state["failures"], f"no failure of {job_id} is noted"
    for number, deaths in world.account.lone_deaths.items():
        assert deaths <= CRASHES, f"{number} killed {deaths} processes"
        is_blocked = world.workload.dead_head == "block"
        assert deaths < CRASHES or number in dead or is_blocked, f"{number} killed {deaths} processes, and is not dead"
    counted = state["counters"]["dead"]
    # Of those that go with their head only that is counted.
    assert counted == len(dead) or world.workload.dead_head == "drop", (
        f"{counted} are counted as dead, and {len(dead)} are"
    )


def _look_at_blocked(world: "ShardWorld", state: dict[str, Any]) -> None:
    texts = {f"{number} failed{LAST_TIME}" for number in world.pushed} | {"crashed"}
    for job_id in state["waiting"]:
        kept = state["trouble"][job_id].keys()
        assert {"blocked_since", "head"} <= kept <= {"blocked_since", "head", "abandoned"}, f"{job_id} has {kept}"
        assert state["errors"].get(job_id) in texts, f"{job_id} is blocked by {state['errors'].get(job_id)!r}"
        if job_id.startswith("bad"):
            _, count, *_ = state["failures"][job_id][0]
            assert count == RETRIES, f"{job_id} is blocked by failure {count}"


def _look_at_items(world: "ShardWorld", state: dict[str, Any]) -> None:
    dead = {str(number_of(entry)) for each in state["morgue"].values() for entry in each[2]}
    blocked = {str(number_of((*job[5], *job[0])[0])) for job in state["waiting"].values()}
    waiting = {str(number_of(entry)) for job in state["waiting"].values() for entry in (*job[5], *job[0])}
    for (_, label), item in check_items(world.admin, world.shard).items():
        statuses = "x" if label in dead else "e" if label in waiting else "df"
        assert item.status in statuses, f"item {label} is {item.status}"
        assert item.messages or label not in dead | blocked, f"item {label} does not say why it is {item.status}"
        tries = RETRIES + 1 if label in blocked and item.id.startswith("bad") else 0
        assert item.attempts >= tries, f"item {label} is blocked after {item.attempts} tries"
        assert item.status != "f" or {f"refused: {item.id}", "expired"} & {*item.messages}, (
            f"item {label} is refused for {item.messages}"
        )


def _without_dying(events: Sequence[Event], *, supersedes: bool) -> Iterator[Event]:
    """The history as one knows it who is not told of pushes to ids that kill their processes.

    Their deaths are counted by the account of the shard. `supersedes`: nor of what a later payload supersedes behind a
    dead head.
    """
    newest = max((event.numbers[-1] for event in events if event.what == "push-end"), default=0)
    for event in events:
        may_go = supersedes and event.id.startswith("bad") and bool(event.numbers) and event.numbers[-1] < newest
        is_open = event.what == "push-end" and (may_go or event.id.startswith("kill"))
        yield msgspec.structs.replace(event, outcome="unknown") if is_open else event


def _of_newest(events: Sequence[Event]) -> Iterator[str]:
    """Of each id the newest payload is done, or dead, and no smaller one runs behind it."""
    newest: dict[str, int] = {}
    ran: dict[str, int] = {}
    for event in events:
        if event.what == "push-end":
            newest[event.id] = max(newest.get(event.id, 0), *event.numbers)
        elif event.what == "begin":
            if len(event.numbers) != 1:
                yield f"{event.id} got {event.numbers}"
            if event.numbers[-1] < ran.get(event.id, 0):
                yield f"{event.id} got {event.numbers} behind {ran[event.id]}"
        elif event.what in {"settled", "left"} and event.numbers:
            ran[event.id] = max(ran.get(event.id, 0), event.numbers[-1])
    for job_id, number in newest.items():
        if ran.get(job_id, 0) < number:
            yield f"{job_id} {number} is neither done nor dead"
