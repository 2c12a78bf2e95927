"""The app and the queue that a command is given: as the app declares the queue, or as the server has it."""

import os
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

from cyclopts import Parameter

from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.errors import ConfigError, QueueMismatch
from lowkiq_lambda.cli.contexts import CONTEXT, REDIS_URL
from lowkiq_lambda.cli.noting import reason_for
from lowkiq_lambda.cli.output import NOTHING, agreed, remark, say
from lowkiq_lambda.cli.parts import AppOption, Reason, Yes, app_spec
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.settings.development import refuse_in_deployment
from lowkiq_lambda.settings.loading import load_app
from lowkiq_lambda.store.shard.layout import QueueShards

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.queue_operations import QueueOperations
    from lowkiq_lambda.store.shard.declarations import Registered

OneQueue: TypeAlias = Annotated[
    str | None, Parameter(name="QUEUE", help="This queue alone, by its name or its worker's.")
]
"""Of a command about all queues."""
QueueName: TypeAlias = Annotated[str, Parameter(name="QUEUE", help="The queue, by its name or its worker's.")]
_SIMILAR: Final = 0.6


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ActOptions:
    """Of each command that changes what others work with: it says what it touches, and asks."""

    app: AppOption = None
    reason: Reason = None
    yes: Yes = False

    def is_agreed(self, question: str, *, json: bool) -> bool:
        """Whether it is to be done; if not, a line says that nothing was changed. Raises ConfigError.

        `json`: a program reads the output.
        """
        if self.yes or agreed(question, aside=json):
            return True
        (remark if json else say)(NOTHING)
        return False

    def reason_if_agreed(self, question: str, ids: int, *, json: bool) -> str | None:
        """Why it is to be done to so many ids, which is asked for where it is needed; None if it is not to be done.

        Raises ConfigError. `json`: as above.
        """
        if not self.is_agreed(question, json=json):
            return None
        reason = reason_for(ids, self.reason, yes=self.yes, aside=json)
        if reason is None:
            (remark if json else say)(NOTHING)
        return reason


ACT: Final = ActOptions()


class NamedQueue(NamedTuple):
    """A queue with the shards that it has. `worker`: None where the app has none for it."""

    app: "Lowkiq"
    name: str
    worker: type[Worker[Any]] | None
    shards: QueueShards
    merge: str
    is_agreed: bool

    @property
    def agreed_worker(self) -> type[Worker[Any]] | None:
        """The worker, where it declares the queue as it was made: what it says counts."""
        return self.worker if self.is_agreed else None

    @property
    def operate(self) -> "QueueOperations":
        """What is seen of it, and done to it."""
        from lowkiq_lambda.operate.queue_operations import QueueOperations
        from lowkiq_lambda.operate.queue_parts import StoredQueue

        return QueueOperations(self.app.core, self.worker, lambda: StoredQueue(self.shards, self.merge))


def app_of(spec: str | None) -> "Lowkiq":
    """The app that is named, on the embedded server where it names none, as `lowkiq run` has it. Raises LowkiqError."""
    from lowkiq_lambda.app import Lowkiq

    app = load_app(app_spec(spec, os.environ), Lowkiq)
    _refuse_other_server(app)
    if not app.config.names_server:
        refuse_in_deployment("No Redis is named", os.environ)
        app.core.configure(redis_url=EMBEDDED)
    if is_embedded(app.config.redis_url):
        refuse_in_deployment(f"redis_url={app.config.redis_url!r} is for development", os.environ)
        from lowkiq_lambda.providers.embedded.shared import attach

        # The reader of the output knows which server it is.
        attach(app.config, os.environ, tell=False)
    return app


def _refuse_other_server(app: "Lowkiq") -> None:
    """Raises ConfigError if the app's code names another server than the context: code wins over the environment."""
    context, url = os.environ.get(CONTEXT), os.environ.get(REDIS_URL)
    if context and url and app.config.redis_url != url:
        raise ConfigError(
            f"The app's code names its server itself, so the redis_url of the context {context!r} has no effect: "
            "take redis_url out of the code, or out of the context."
        )


def worker_of(app: "Lowkiq", name: str) -> type[Worker[Any]]:
    """The worker of the queue, which may be named by it. Raises ConfigError, with the name that was meant."""
    worker = worker_named(app, name)
    if worker is None:
        raise _unknown(app, name)
    return worker


def queue_of(app: "Lowkiq", word: str) -> NamedQueue:
    """The queue as the server has it, where the app has none or declares it otherwise: then a remark says so.

    Raises ConfigError for one that neither has, QueueMismatch where its declaration cannot be read, BackendError.
    """
    from lowkiq_lambda.store.shard.declarations import read_registered

    worker = worker_named(app, word)
    if worker is None:
        there = read_registered(app.core.backend, word, app.config.redis_retry_for)
        if there is None:
            raise _unknown(app, word)
        remark(f"note: the app has no worker for the queue {word!r}, which is on the server.")
        return _as_it_is(app, word, None, there)
    name = worker.queue_name
    try:
        return NamedQueue(app, name, worker, app.core.queues.current(worker).shards, worker.merge, is_agreed=True)
    except QueueMismatch as error:
        stored = read_registered(app.core.backend, name, app.config.redis_retry_for)
        if stored is None or error.stored is None:
            raise
        remark(
            f"note: the app declares the queue {name!r} with {error.declared}, and it was made with {error.stored}: "
            "the latter counts here."
        )
        return _as_it_is(app, name, worker, stored)


def _as_it_is(app: "Lowkiq", name: str, worker: type[Worker[Any]] | None, there: "Registered") -> NamedQueue:
    from lowkiq_lambda.store.shard.declarations import HASHES, LAYOUTS

    made_with = there.made_with
    if made_with.get("layout") not in LAYOUTS or made_with.get("hash") not in HASHES:
        raise QueueMismatch(f"The queue {name!r} was made by a version of the library that this one does not know.")
    return NamedQueue(
        app, name, worker, there.shards(name, app.core.backend.prefix), made_with["merge"], is_agreed=False
    )


def worker_named(app: "Lowkiq", name: str) -> type[Worker[Any]] | None:
    """The worker of the queue, which may be named by it; None if the app has none."""
    return app.core.queues.worker_named(name) or next((one for one in app.workers if one.__name__ == name), None)


def _unknown(app: "Lowkiq", word: str) -> ConfigError:
    names = [worker.queue_name for worker in app.workers]
    by_small = {name.lower(): name for name in (*names, *(worker.__name__ for worker in app.workers))}
    meant = get_close_matches(word.lower(), by_small, 1, _SIMILAR)
    has = ", ".join(names) or "none"
    if meant:
        return ConfigError(f"There is no queue {word!r}: did you mean {by_small[meant[0]]}? The app has {has}.")
    return ConfigError(f"There is no queue {word!r}: the app has {has}.")
