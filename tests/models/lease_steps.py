"""The steps of the model of the lease: what each process, the network and time may do next."""

from collections.abc import Iterator
from typing import Final

from tests.models.lease import AHEAD, DRIFT, MARGIN, NONCES, TTL, Guard, LeaseCall, LeaseProcess, LeaseWorld, answer

NAMES: Final = "AB"


def steps(
    world: LeaseWorld, *, end: int, payloads: int, sessions: int, without: Guard | None = None
) -> Iterator[tuple[str, LeaseWorld]]:
    """Each step that is possible, with bounds of time, of payloads, and of the sessions of each process."""
    shard = world.shard
    if world.pushed < payloads:
        waiting = (*shard.waiting, world.pushed + 1)
        yield "a push", world._replace(pushed=world.pushed + 1, shard=shard._replace(waiting=waiting))
    for number, process in enumerate(world.processes):
        yield from _of_process(world, number, process, sessions)
    for call in world.calls:
        yield from _arrivals(world, call, without)
    if world.lies and shard.key > world.time:
        yield "the key is evicted", world._replace(lies=0, shard=shard._replace(key=0))
    # A process that runs looks at its clock before its trust ends.
    if world.time < end and all(each.phase != "runs" or world.time + 1 < each.trust for each in world.processes):
        yield "time goes by", world._replace(time=world.time + 1)


def _of_process(
    world: LeaseWorld, number: int, process: LeaseProcess, sessions: int
) -> Iterator[tuple[str, LeaseWorld]]:
    name, shard = NAMES[number], world.shard
    if process.phase == "idle" and process.sessions < sessions and (shard.waiting or shard.flight):
        nonce = (number + 1) * NONCES + process.sessions + 1
        asking = LeaseProcess("asks", nonce, sent=world.time, sessions=process.sessions + 1)
        call = LeaseCall(number, nonce, 0, 0, world.time)
        yield f"{name} acquires", world.with_process(number, asking)._replace(calls=world.calls | {call})
    if process.phase in ("runs", "late"):
        ran = world.ran + tuple(payload for payload in process.claim if payload not in world.ran)
        yield f"{name}'s handler ends", world.with_process(number, process._replace(phase="ran"))._replace(ran=ran)
    if process.phase == "runs" and world.time >= process.trust - DRIFT:
        yield f"{name} trusts no longer", world.with_process(number, process.ended())
    if process.phase == "ran":
        asking = process._replace(phase="asks", call=process.call + 1, sent=world.time, claim=())
        call = LeaseCall(number, process.nonce, asking.call, process.token, world.time)
        yield f"{name} settles", world.with_process(number, asking)._replace(calls=world.calls | {call})
    if process.phase == "asks":
        yield f"{name} gives up", world.with_process(number, process.ended())
    if world.deaths and process.phase in ("runs", "ran", "asks"):
        yield f"{name} dies", world.with_process(number, process.ended("dead"))._replace(deaths=0)
    if world.freezes and process.phase == "runs":
        yield f"{name} stands still", world.with_process(number, process._replace(phase="frozen"))._replace(freezes=0)
    if process.phase == "frozen":
        yield f"{name} goes on", world.with_process(number, process._replace(phase="late"))


def _arrivals(world: LeaseWorld, call: LeaseCall, without: Guard | None) -> Iterator[tuple[str, LeaseWorld]]:
    rest = world.calls - {call}
    if call.left > 1:
        rest |= {call._replace(left=call.left - 1)}
    for ahead in (0, AHEAD) if world.lies and call.number == 0 else (0,):
        shard, claim = answer(world, call, ahead, without)
        what = f"{NAMES[call.process]}'s call {call.number} of {call.sent} arrives" + (
            " ahead of time" if ahead else ""
        )
        after = world._replace(shard=shard, calls=rest, lies=world.lies - bool(ahead))
        yield f"{what}, its answer is lost", after
        process = world.processes[call.process]
        if (process.phase, process.nonce, process.call) == ("asks", call.nonce, call.number):
            for slow in (0, DRIFT) if claim else (0,):
                yield f"{what}, is answered {claim}", _answered(after, call, claim, slow, without)


def _answered(
    world: LeaseWorld, call: LeaseCall, claim: tuple[int, ...] | None, slow: int, without: Guard | None
) -> LeaseWorld:
    process = world.processes[call.process]
    since = world.time if without == "trust from the sending" else call.sent
    trust = since + TTL - (0 if without == "margin" else MARGIN) + slow
    if not claim or world.time >= trust:
        return world.with_process(call.process, process.ended())
    token = world.shard.token if call.number == 0 else process.token
    running = process._replace(phase="runs", call=call.number, token=token, trust=trust, claim=claim)
    handed = world.handed + tuple(payload for payload in claim if payload not in world.handed)
    return world.with_process(call.process, running)._replace(handed=handed)
