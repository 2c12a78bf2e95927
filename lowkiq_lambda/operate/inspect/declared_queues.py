"""All queues that Redis knows, also those that no worker of the app has; only read."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote

from lowkiq_lambda.engine.budget import BatchTiming
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


class ShardNotes(NamedTuple):
    """What the shards of a queue say of their drains.

    `least_version`: of the contract, for a library that may write to all of them; 0 for any. `timings`: of the batches.
    """

    least_version: int
    timings: Sequence[BatchTiming]

    @property
    def calls(self) -> int:
        """How many calls of a shard its holder makes at once, as it has found; 0: that is declared."""
        return max((timing.calls for timing in self.timings), default=0)

    @property
    def ids(self) -> int:
        """How many ids a call has, as a holder has found; 0: that is declared."""
        return max((timing.ids for timing in self.timings), default=0)


def shard_notes(backend: Backend, queues: Sequence[Sequence[ShardRef]]) -> list[ShardNotes]:
    """Those of each queue, in one round trip for all of them. Raises BackendError."""
    with translated():
        keys = [shard.key("meta") for shards in queues for shard in shards]
        commands = [(key, ("HMGET", key, "least_version", "pace", "timing_from")) for key in keys]
        answers = iter([unless_refused(answer) for answer in send_each(backend.client, commands)] if keys else [])
    each = ([answer or (None, None, None) for answer in islice(answers, len(shards))] for shards in queues)
    return [_notes(own) for own in each]


def _notes(answers: Sequence[tuple[bytes | None, bytes | None, bytes | None]]) -> ShardNotes:
    versions = (int(version) for version, _, _ in answers if version and version.isdigit())
    paces = (pace + b"@" + since if since else pace for _, pace, since in answers if pace)
    return ShardNotes(max(versions, default=0), [*_timings(paces)])


def _timings(paces: Iterable[bytes]) -> Iterator[BatchTiming]:
    for pace in paces:
        # The next drain repairs what is damaged.
        with suppress(ValueError):
            yield BatchTiming.of(pace.decode(errors="replace"))


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
