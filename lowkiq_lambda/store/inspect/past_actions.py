"""What people did to queues by the dashboard: of each queue the last actions, kept beside it.

A record is written behind the action, so that an action of a process that dies between the two has none; the audit log
has the same gap. It is kept for people to read, not as evidence: whoever can write to the server can change it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from lowkiq_lambda.action_views import PastAction
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import actions_key

KEPT: Final = 500
"""Records of a queue."""
KEPT_FOR: Final = 90 * 86_400
"""Seconds behind the last of them."""
OF_NO_QUEUE: Final = ""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PastAction).decode


def record_action(backend: Backend, action: PastAction) -> None:
    """Keep it, once; where Redis does not take it, the audit log alone has it."""
    key = actions_key(action.queue)
    commands: Sequence[tuple[Any, ...]] = (
        ("LPUSH", key, _encode(action)),
        ("LTRIM", key, 0, KEPT - 1),
        ("EXPIRE", key, KEPT_FOR),
    )
    with suppress(*REDIS_ERRORS):
        send_each(backend.client, [(key, command) for command in commands])


def past_actions(backend: Backend, retry_for: float, queue_names: Sequence[str], limit: int) -> list[PastAction]:
    """The last actions on these queues, newest first; of one that took several requests the last. BackendError."""
    commands = [(key, ("LRANGE", key, 0, KEPT - 1)) for key in map(actions_key, queue_names)]
    answers = backend.retrying(
        retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)]
    )
    found = sorted((each for answer in answers for each in _readable(answer)), key=lambda each: each.at, reverse=True)
    runs, shown = set[str](), list[PastAction]()
    for action in found:
        if action.run not in runs:
            shown.append(action)
        runs |= {action.run} - {""}
    return shown[:limit]


def _readable(stored: Sequence[bytes]) -> Iterator[PastAction]:
    """What another version wrote in another form is left out."""
    for record in stored:
        with suppress(msgspec.MsgspecError):
            yield _decode(record)
