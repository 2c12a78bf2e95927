"""Pushes to a queue whose worker another program declares: what the queue was made with is read from Redis."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from lowkiq_lambda.base.errors import DeclarationError, NoSuchQueue, QueueMismatch
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.declare.worker import HOME, Worker
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.push.pushes import Pushes
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import (
    HASH_OF_TENANT,
    LAYOUT_WITH_TENANTS,
    Registered,
    read_registered,
    readable_shards,
)

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.debounce import Debounce
    from lowkiq_lambda.settings.config import Config

_SPREAD: Final = "spread"


class Owner(Protocol):
    """The core of the app that pushes to the queue."""

    @property
    def backend(self) -> Backend:
        """The connections that pushes go through."""
        ...

    @property
    def config(self) -> "Config":
        """The settings."""
        ...

    @property
    def queues(self) -> QueueRegistry:
        """The queues of the app."""
        ...

    @property
    def pushes(self) -> Pushes:
        """The pushes of the app."""
        ...


class RemoteWorker(FunctionWorker[Any]):
    """A worker of another program, by the name of its queue: it is pushed to, and nothing else."""

    def __init__(self, core: Owner, queue_name: str, debounce: "Debounce | None") -> None:
        self.queue_name: Final = queue_name
        self.__name__ = queue_name
        self._core = core
        self._debounce = debounce

    @property
    def worker(self) -> type[Worker[Any]]:  # type: ignore[override]  # is found at the first push
        """The worker of the app if it declares the queue, else one with the queue's own terms.

        Raises NoSuchQueue if the queue does not exist, QueueMismatch if its declaration cannot be read, BackendError.
        """
        return (
            self._core.queues.worker_named(self.queue_name)
            or remote_queue(self._core, self.queue_name, self._debounce).worker
        )

    def __call__(self, _batch: object) -> NoReturn:
        """Refuse: the code is elsewhere. Raises DeclarationError."""
        raise DeclarationError(f"The code of the queue {self.queue_name!r} is in another program: push to it.")

    def __repr__(self) -> str:
        return f"<worker of the queue {self.queue_name!r}, declared elsewhere>"


class RemoteQueue(Queue):
    """The queue of such a worker: if it was made anew with other terms, this object uses them."""

    def __init__(self, core: Owner, name: str, debounce: "Debounce | None", there: Registered) -> None:
        self._core = core
        self._debounce = debounce
        codec, prefix = core.config.codec_name, core.backend.prefix
        super().__init__(_made_as(core, name, debounce, there), lambda: codec, lambda: prefix, core.queues.advice)
        self.learn(there)

    def ensure_declared(self, backend: Backend, retry_for: float) -> None:
        """As that of any queue, by the terms that Redis has now. Raises QueueMismatch, BackendError."""
        try:
            super().ensure_declared(backend, retry_for)
        except QueueMismatch:
            there = read_registered(backend, self.worker.queue_name, retry_for)
            if there is None or there.agrees(self.declaration):
                raise
            self.worker = _made_as(self._core, self.worker.queue_name, self._debounce, there)
            self.learn(there)
            super().ensure_declared(backend, retry_for)


def remote_queue(core: Owner, name: str, debounce: "Debounce | None") -> Queue:
    """The queue of a worker that another program declares, as Redis has it; read once.

    Raises NoSuchQueue, QueueMismatch, BackendError.
    """
    return core.queues.remembered(name, lambda: _read_queue(core, name, debounce))


def _read_queue(core: Owner, name: str, debounce: "Debounce | None") -> RemoteQueue:
    there = read_registered(core.backend, name, core.config.redis_retry_for)
    if there is None:
        raise NoSuchQueue(
            f"Nobody has made the queue {name!r} on this server yet, so nobody knows its shards: the program that "
            "declares its worker makes it with its first push or drain."
        )
    return RemoteQueue(core, name, debounce, there)


def _made_as(core: Owner, name: str, debounce: "Debounce | None", there: Registered) -> type[Worker[Any]]:
    """A worker that declares just what the queue was made with. Raises QueueMismatch."""
    if not readable_shards(name, there, core.backend.prefix):
        raise QueueMismatch(
            f"The declaration of the queue {name!r} cannot be read, or a version of the library made it that this one "
            "does not know. Nothing was written.",
            queue_name=name,
        )
    made_with = there.made_with
    terms = {"shards_count": made_with["shards_count"], "merge": made_with["merge"], "tenants": _tenants(made_with)}
    body = {**terms, "queue_name": name, "debounce": debounce, "app": core.pushes, "__module__": __name__}
    return type(name, (Worker,), body)


def _tenants(made_with: Mapping[str, Any]) -> str | None:
    if made_with["layout"] != LAYOUT_WITH_TENANTS:
        return None
    return HOME if made_with["hash"] == HASH_OF_TENANT else _SPREAD
