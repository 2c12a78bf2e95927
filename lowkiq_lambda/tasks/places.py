"""Where the items of tasks are: the shards of their queues, also of queues that are or have been resharded.

A process may use an outdated shard layout: the items have moved, so it would see no open item. So before a task counts
as complete, the declarations of its queues are read once more. They are the same as before only if no move has begun
since, because each move begins by writing its own epoch there.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowkiq_lambda.store.shard.declarations import read_registered
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef
from lowkiq_lambda.store.shard.layout import Layout, settled

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core


class Places:
    """The shards of queues as one app has them: its own queues, and those in which it only has tasks."""

    def __init__(self, core: "Core", retry_for: float) -> None:
        self._core = core
        self._retry_for = retry_for
        self._others: dict[str, Layout] = {}

    def layouts(self, queues: Mapping[str, int]) -> dict[str, Layout]:
        """The layouts of queues, as far as is known; each is given with the count that it had when it was pushed to."""
        return {name: self._known(name, count) for name, count in queues.items()}

    def have_stayed(self, layouts: Mapping[str, Layout]) -> bool:
        """Whether the queues had these shards, and no others, from when that was known on. Raises BackendError."""
        return all(self._is_settled(name, layout) for name, layout in layouts.items())

    def _known(self, name: str, count: int) -> Layout:
        queue = self._core.queues.get(name)
        return queue.shards.layout if queue else self._others.get(name) or settled(count)

    def _is_settled(self, name: str, known_layout: Layout) -> bool:
        there = read_registered(self._core.backend, name, self._retry_for)
        if there is None or not there.is_readable:
            return not known_layout.is_moving
        layout = there.shards(name, self._core.backend.prefix).layout
        queue = self._core.queues.get(name)
        if queue is None:
            self._others[name] = layout
        elif there.agrees(queue.declaration):
            queue.learn(there)
        return not known_layout.is_moving and (layout.before, layout.after, layout.epoch) == (
            known_layout.before,
            known_layout.after,
            known_layout.epoch,
        )


def tracked(name: str, layout: Layout, prefix: str) -> list[ShardRef]:
    """The shards of a queue that has this layout, with the keys that have items; `prefix`: of the app's keys."""
    return [
        ShardRef(name, home.shards_count, home.index, (TRACKING,), number=number, prefix=prefix)
        for number, home in enumerate(layout.homes)
    ]
