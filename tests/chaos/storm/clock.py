"""The clock of the server, which somebody sets forward and back."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import Asking, Nodes
from tests.kit.servers import Server
from tests.proof.history import Recorder

SMALL: Final = 0.04
"""Of a lease: two such steps fit into its margin."""
FAR: Final = 1.5
"""Of a lease: more than what is left of any."""


@contextmanager
def reading_clock(path: Path) -> Iterator[None]:
    """In the block this process takes the server's clock to be ahead by as many seconds as the file says."""
    observe, patched = Nodes.observe, cast("Any", Nodes)

    def observe_ahead(nodes: Nodes, node: str, reply: tuple[bytes, bytes], asking: Asking) -> float:
        seconds = int(reply[0]) + int(reply[1]) / 1_000_000 + float(path.read_text())
        ahead = int(seconds), round((seconds - int(seconds)) * 1_000_000)
        return observe(nodes, node, (b"%d" % ahead[0], b"%d" % ahead[1]), asking)

    patched.observe = observe_ahead
    try:
        yield
    finally:
        patched.observe = observe


class ClockFile(NamedTuple):
    """Where it stands how far the clock is ahead, and the name of the harm that changes it."""

    path: Path
    name: str


class ServerClock:
    """Sets the clock by a little, back, or forward by more than a lease, which takes the lease from its holder.

    The file is read by the processes of a storm, or by libfaketime below the server.
    """

    def __init__(  # noqa: PLR0913 - some by keyword
        self, file: ClockFile, server: Server, shards: list[ShardRef], history: Recorder, *, lease_ttl: float, seed: int
    ) -> None:
        self.name = file.name
        self._path = file.path
        self._server = server
        self._shards = shards
        self._history = history
        self._ttl = lease_ttl
        self._rng = random.Random(seed)
        self._ahead = 0.0
        self._kinds: list[str] = []
        self._set(0.0)

    def happen(self) -> bool:
        """Each kind of step comes before one comes again."""
        self._kinds = self._kinds or self._rng.sample(["little", "back", "far"], 3)
        kind = self._kinds.pop()
        if kind == "far":
            self._step_far()
        elif kind == "little":
            self._set(self._ahead + self._rng.uniform(0.0, SMALL) * self._ttl)
        else:
            self._set(self._ahead - self._rng.uniform(0.1, FAR) * self._ttl)
        return True

    def _step_far(self) -> None:
        at = time.monotonic()
        self._set(self._ahead + FAR * self._ttl)
        # By a clock that is set forward a key's time to live is over.
        self._server.admin.delete(*(shard.key("lease") for shard in self._shards))
        for shard in self._shards:
            token: Any = self._server.admin.hget(shard.key("meta"), "token")
            self._history.write("evicted", at=at, scope=str(shard.index), token=int(token or 0))

    def _set(self, ahead: float) -> None:
        self._ahead = ahead
        # Read at any moment: it is never half written.
        new = self._path.with_suffix(".new")
        new.write_text(f"{ahead:+.6f}\n")
        new.replace(self._path)
