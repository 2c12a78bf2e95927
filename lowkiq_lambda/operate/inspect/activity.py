"""The activity of a queue: the last actions of people on it, stored beside the queue.

A record is written after its action, so an action has no record if the process dies between the two. The activity log
has the same gap. The records are for people to read and not evidence: anybody with write access to the server can
change them.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeGuard

import msgspec

from lowkiq_lambda.store.server.faults import REDIS_ERRORS, unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import activity_key, dashboard_key
from lowkiq_lambda.views.activity import KEPT, ActivityEntry

KEPT_FOR: Final = 90 * 86_400
"""Seconds behind the last record of a queue."""
OF_NO_QUEUE: Final = ""
_OWN_KEY: Final = secrets.token_bytes(32)


class _Record(ActivityEntry, frozen=True, kw_only=True):
    """As it is kept. `by_step`: how many ids this step has changed; `changed`: what the action told then."""

    by_step: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Record).decode


def record_action(backend: Backend, action: ActivityEntry, by_step: int = 0) -> None:
    """Keep it, once; if Redis does not take it, only the activity log has it."""
    key = activity_key(action.queue, backend.prefix)
    commands: Sequence[tuple[Any, ...]] = (
        ("LPUSH", key, _encode(_Record(**msgspec.structs.asdict(action), by_step=by_step))),
        ("LTRIM", key, 0, KEPT - 1),
        ("EXPIRE", key, KEPT_FOR),
    )
    with suppress(*REDIS_ERRORS):
        send_each(backend.client, [(key, command) for command in commands])


def read_activity(
    backend: Backend, retry_for: float, queue_names: Sequence[str], limit: int, of_each: int | None = None
) -> list[ActivityEntry]:
    """The last actions on these queues, newest first; of one that took several requests the last. Raises BackendError.

    `of_each`: so many records of each queue are read, instead of all.
    """
    keys = [activity_key(name, backend.prefix) for name in queue_names]
    commands = [(key, ("LRANGE", key, 0, (of_each or KEPT) - 1)) for key in keys]
    answers = backend.retrying(
        retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)]
    )
    actions = sorted((each for answer in answers for each in _readable(answer)), key=lambda each: each.at, reverse=True)
    return _by_action(actions)[:limit]


def signing_key(backend: Backend, retry_for: float) -> bytes:
    """What dashboards of this server sign with what browsers keep of an action. Raises BackendError."""
    key = dashboard_key("signing", backend.prefix)
    stored = backend.retrying(retry_for, lambda: unless_error(*send_each(backend.client, [(key, ("GET", key))])))
    if not _is_key(stored):
        _, stored = send_each(backend.client, [(key, ("SET", key, _OWN_KEY, "NX")), (key, ("GET", key))])
    # A full server takes no key, and jobs have to be deleted there all the same: steps then stay with this process.
    return stored if _is_key(stored) else _OWN_KEY


def _is_key(stored: object) -> TypeGuard[bytes]:
    return isinstance(stored, bytes) and len(stored) == len(_OWN_KEY)


def _by_action(newest_first: Sequence[_Record]) -> list[ActivityEntry]:
    """One record for the steps of a bulk action: the last, with all that they changed. Others' steps are others'.

    A state that is sent again tells what it told before, and may find other jobs by then: so the steps are summed, too.
    """
    actions: dict[tuple[str, ...] | int, list[_Record]] = {}
    for number, record in enumerate(newest_first):
        of_action = (
            (record.action_id, record.who, record.action, record.queue, record.target) if record.action_id else number
        )
        actions.setdefault(of_action, []).append(record)
    return [_as_one(records) for records in actions.values()]


def _as_one(records: Sequence[_Record]) -> ActivityEntry:
    # The oldest records may be gone: what a step told has them.
    changed = max(sum(record.by_step for record in records), *(record.changed for record in records))
    last = {name: getattr(records[0], name) for name in ActivityEntry.__struct_fields__}
    return ActivityEntry(**{**last, "changed": changed})


def _readable(stored: Sequence[bytes]) -> Iterator[_Record]:
    """Records of another version in another form are left out."""
    for record in stored:
        with suppress(msgspec.MsgspecError):
            yield _decode(record)
