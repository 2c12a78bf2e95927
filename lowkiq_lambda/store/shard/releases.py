"""The releases of the user's code that processes have had, each with when it was first seen: marks for charts."""

from typing import Final

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ProcessesRef, releases_key

KEPT: Final = 50


def note_release(backend: Backend, release: str) -> None:
    """Note it with the next call of this process, unless it is noted already: that costs no round trip."""
    key = releases_key(backend.prefix)
    now = backend.nodes.estimate(ProcessesRef(backend.prefix))
    backend.piggyback(
        [(key, ("ZADD", key, "NX", f"{now:.3f}", release)), (key, ("ZREMRANGEBYRANK", key, 0, -1 - KEPT))]
    )
