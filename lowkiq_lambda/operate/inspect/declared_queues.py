"""All queues that Redis knows, also those that no worker of the app has; only read."""

from collections.abc import Sequence
from itertools import islice
from typing import Final
from urllib.parse import unquote

from lowkiq_lambda.store.server.faults import is_wrong_type, translated, unless_refused
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import Registered, registered
from lowkiq_lambda.store.shard.keys import ShardRef, declaration_key

_STEP: Final = 1_000


def declared_queues(backend: Backend, retry_for: float) -> dict[str, Registered]:
    """The declaration of each queue, by its name; an empty one where it cannot be read. Raises BackendError.

    It looks at every key of the server, and takes those of the app's namespace.
    """
    return backend.retrying(retry_for, lambda: _declared(backend))


def least_versions(backend: Backend, queues: Sequence[Sequence[ShardRef]]) -> list[int]:
    """Of each queue: the least contract version of a library that may write to all its shards; 0 for any.

    One round trip for all of them. Raises BackendError.
    """
    with translated():
        keys = [shard.key("meta") for shards in queues for shard in shards]
        commands = [(key, ("HGET", key, "least_version")) for key in keys]
        answers = iter([unless_refused(answer) for answer in send_each(backend.client, commands)] if keys else [])
    each = ([*islice(answers, len(shards))] for shards in queues)
    return [max((int(answer) for answer in own if answer and answer.isdigit()), default=0) for own in each]


def _declared(backend: Backend) -> dict[str, Registered]:
    before, after = declaration_key("\0", backend.prefix).split("%00")
    matches = backend.client.scan_iter(match=f"{before}*{after}", count=_STEP)
    keys = sorted({key.decode() for key in matches})
    values = send_each(backend.client, [(key, ("GET", key)) for key in keys])
    names = [unquote(key.removeprefix(before).removesuffix(after)) for key in keys]
    return {name: _decoded(value) for name, value in zip(names, values, strict=True) if value is not None}


def _decoded(value: object) -> Registered:
    if isinstance(value, Exception) and not is_wrong_type(value):
        raise value
    return registered(value)
