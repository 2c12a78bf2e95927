"""A queue that is being resharded, step by step, in the hands of a test: what movers write, and nothing is carried."""

from typing import Any

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.store.shard.declarations import Registered, registered, replace_registered
from lowkiq_lambda.store.shard.keys import ShardRef, declaration_key
from lowkiq_lambda.store.shard.layout import Home, Layout, settled
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare


class HandMade:
    """A move of a queue to another count of shards."""

    def __init__(self, server: Server, app: Lowkiq, queue_name: str) -> None:
        self._server = server
        self._app = app
        self._name = queue_name
        there = self._there()
        self._merge: str = there.made_with["merge"]
        self.layout: Layout = there.layout or settled(there.made_with["shards_count"])

    def through(self, after: int) -> None:
        """Move a queue that has no jobs."""
        self.begin(after)
        for group in range(self.layout.groups):
            self.close(group)
            self.open(group)
        self.end()

    def begin(self, after: int) -> None:
        """Say in the declaration that the queue moves."""
        epoch = int(self._app.core.backend.now(self.shard(Home(self.layout.before, 0))) * 1_000_000)
        self._write(self.layout.begun(after, epoch))

    def close(self, group: int, last_score: float = 0.0) -> None:
        """Make the new shards of the group receive, and close the old ones."""
        epoch = self.layout.epoch
        for home in self.layout.targets(group):
            self._server.admin.hdel(self.shard(home).key("meta"), "closed")
            self._set(home, receiving=epoch, generation=epoch, merge=self._merge)
        for home in self.layout.sources(group):
            self._set(home, closed=f"{epoch} 0 {last_score} 0", generation=epoch)

    def open(self, group: int) -> None:
        """Open the new shards of the group, and say so."""
        for home in self.layout.targets(group):
            self._server.admin.hdel(self.shard(home).key("meta"), "receiving")
        self._write(self.layout.with_moved(group))

    def end(self) -> None:
        """Give the queue its new count, as all groups have moved."""
        self._write(self.layout.ended(), shards_count=self.layout.after, generation=self.layout.epoch)

    def shard(self, home: Home) -> ShardRef:
        """The shard of the queue that is there."""
        return ShardRef(self._name, home.shards_count, home.index)

    def _there(self) -> Registered:
        return registered(self._server.admin.get(declaration_key(self._name)))

    def _write(self, layout: Layout, shards_count: int | None = None, generation: int | None = None) -> None:
        there = self._there()
        made_with = {**there.made_with, **({} if shards_count is None else {"shards_count": shards_count})}
        after = Registered(made_with, generation or there.generation, layout=layout)
        if not replace_registered(self._app.core.backend, self._name, there, after, 1.0):
            raise AssertionError("somebody else has changed the declaration")
        self.layout = layout

    def _set(self, home: Home, **fields: str | int) -> None:
        self._server.admin.hset(self.shard(home).key("meta"), mapping=dict[Any, Any](fields))


class Both:
    """Two processes that have the queue with 4 shards; the second moves it."""

    def __init__(self, make_app: MakeApp, queue_name: str, **fields: Any) -> None:
        self.name = queue_name
        self.here, self.there = make_app(), make_app()
        self.notes = Notes()
        self.worker = declare(self.here, queue_name, self.notes, shards_count=4, **fields)
        self.mover = declare(self.there, queue_name, Notes(), shards_count=4, **fields)
        self.there.core.queues.agreed(self.mover)
