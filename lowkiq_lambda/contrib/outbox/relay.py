"""Pushes the rows of an outbox, by serial: what cannot be pushed stays, and with it what has to come after it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy.orm import Session, sessionmaker

from lowkiq_lambda.base.error_text import cut, headline
from lowkiq_lambda.base.errors import BackendUnavailable, JobError, LowkiqError, PushInterrupted
from lowkiq_lambda.contrib.outbox.rows import OutboxTable, Row, job_of
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.store.shard.codec import load_json

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq

logger = logging.getLogger(__name__)

_MOST_BLOCKED: Final = 1_000
"""A run ends once it blocks more ids: a query names each of them."""
_NAMED: Final = 5
"""How many obstacles an error names."""
_LENGTH: Final = 300
"""Characters of each."""


class OutboxBlocked(LowkiqError):
    """Rows of the outbox cannot be pushed: they stay, and so do later rows of the same ids."""


class _Entry(NamedTuple):
    row: Row
    job: dict[str, Any]


class _Obstacles:
    """What cannot be pushed in this run, and why: whole queues, and single ids."""

    def __init__(self) -> None:
        self.queues: dict[str, str] = {}
        self.ids: dict[tuple[str, str], str] = {}

    def block(self, queue: str, error: BaseException | str) -> None:
        """Nothing more of the queue is pushed in this run: it might overtake what could not be pushed."""
        self.queues[queue] = text = error if isinstance(error, str) else cut(headline(error), _LENGTH)
        logger.error("an outbox cannot push to a queue: %s", text, extra={"queue": queue})

    def block_id(self, row: Row, error: BaseException) -> None:
        """Nothing more of the id is pushed in this run."""
        self.ids[row.queue, row.job_id] = text = cut(headline(error), _LENGTH)
        extra = {"queue": row.queue, "id": cut(row.job_id, 100), "serial": row.serial}
        logger.error("an outbox blocks an id, as a row of it cannot be pushed: %s", text, extra=extra)

    def blocked(self) -> dict[str, list[str]]:
        """The ids that are blocked, by their queue."""
        by_queue: dict[str, list[str]] = {}
        for queue, job_id in self.ids:
            by_queue.setdefault(queue, []).append(job_id)
        return by_queue

    def raise_if_any(self) -> None:
        """Raises OutboxBlocked, which names the first of them."""
        queues = [f"queue {name!r}: {text}" for name, text in self.queues.items()]
        ids = [f"{queue!r}, id {cut(job_id, 100)!r}: {text}" for (queue, job_id), text in self.ids.items()]
        texts = [*queues, *ids]
        if texts:
            more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
            raise OutboxBlocked(f"Rows of the outbox cannot be pushed. {'; '.join(texts[:_NAMED])}{more}.")


class Relay:
    """Pushes what the transactions of an app have written."""

    def __init__(self, app: "Lowkiq", sessions: sessionmaker[Session], rows: OutboxTable) -> None:
        self._app = app
        self._sessions = sessions
        self._rows = rows

    def chunks(self) -> Iterator[None]:
        """Push all waiting rows, chunk by chunk: a stop between two chunks leaves each row whole or deleted.

        No transaction is open while a push is made. Raises OutboxBlocked at the end, if rows had to stay.
        """
        obstacles = _Obstacles()
        # Each chunk begins at the first row there is: a smaller serial may be committed later than a larger one, and be
        # of an id that has the next change in the chunk that follows.
        while rows := self._next(obstacles):
            if pushed := self._push(rows, obstacles):
                self._rows.delete(self._sessions, pushed)
            yield
        for queue, count in self._rows.counts_beside(self._sessions, [*self._app.core.queues]).items():
            obstacles.block(queue, f"{count:,} rows, and the app has no worker for it")
        obstacles.raise_if_any()

    def _next(self, obstacles: _Obstacles) -> list[Row]:
        if len(obstacles.ids) > _MOST_BLOCKED:
            return []
        queues = [*self._app.core.queues.keys() - obstacles.queues.keys()]
        return self._rows.chunk(self._sessions, queues, obstacles.blocked())

    def _push(self, rows: Sequence[Row], obstacles: _Obstacles) -> list[int]:
        """The serials of the rows that were pushed."""
        by_queue: dict[str, list[Row]] = {}
        for row in rows:
            by_queue.setdefault(row.queue, []).append(row)
        pushed: list[int] = []
        for queue, own in by_queue.items():
            pushed += self._push_to(queue, self._entries(own, obstacles), obstacles)
        return pushed

    def _entries(self, rows: Sequence[Row], obstacles: _Obstacles) -> list[_Entry]:
        """The jobs of the rows, but of ids that are blocked."""
        load: Callable[[bytes], object] = self._app.config.load_payload or load_json
        entries: list[_Entry] = []
        for row in rows:
            if (row.queue, row.job_id) in obstacles.ids:
                continue
            try:
                entries.append(_Entry(row, job_of(row, load)))
            except Exception as error:  # noqa: BLE001 - a codec may raise anything, and other rows can be pushed
                obstacles.block_id(row, error)
        return entries

    def _push_to(self, queue: str, entries: list[_Entry], obstacles: _Obstacles) -> list[int]:
        worker = self._app.core.queues[queue].worker
        while entries:
            try:
                results = self._app.core.pushes.push_past_middlewares(worker, [entry.job for entry in entries])
            except JobError as error:
                # Settings have changed since it was written. Nothing of the call was pushed.
                if error.position is None:
                    obstacles.block(queue, error)
                    return []
                entries = _blocked(entries, error.position, error, obstacles)
            except PushInterrupted as error:
                obstacles.block(queue, error)
                return [entries[position].row.serial for position in error.written]
            except LowkiqError as error:
                obstacles.block(queue, error)
                return []
            else:
                return _taken(queue, entries, results, obstacles)
        return []


def _blocked(entries: list[_Entry], position: int, error: JobError, obstacles: _Obstacles) -> list[_Entry]:
    """The entries without the one at that position, and without later ones of its id."""
    bad = entries[position].row
    obstacles.block_id(bad, error)
    return [
        entry for at, entry in enumerate(entries) if at < position or (at > position and entry.row.job_id != bad.job_id)
    ]


def _taken(queue: str, entries: Sequence[_Entry], results: Sequence[Pushed], obstacles: _Obstacles) -> list[int]:
    """The serials of the rows that Redis has taken. A row that only waits in this process would be lost with it."""
    serials = [entry.row.serial for entry, result in zip(entries, results, strict=True) if not result.buffered]
    if len(serials) < len(entries):
        obstacles.block(queue, BackendUnavailable())
    return serials
