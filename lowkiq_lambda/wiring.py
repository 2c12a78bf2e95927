"""Makes the parts of an app from its settings: its server, the connections to it, and the start of drains."""

import os
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import EMBEDDED, Config, is_embedded
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.server_time import NodeTime
from lowkiq_lambda.store.shard.backend import Backend

if TYPE_CHECKING:
    from lowkiq_lambda.protocols import StartDrain
    from lowkiq_lambda.store.shard.waking import Waker


def server_url(config: Config) -> str:
    """The URL of the server that the settings name; an embedded one is started.

    Raises ConfigError, and EmbeddedServerError if that server does not start.
    """
    if config.redis_url is None:
        raise ConfigError(
            f"No Redis is named. For development set LOWKIQ_REDIS_URL={EMBEDDED} (starts a real Valkey for this "
            "project); else set it to your server.",
            setting="redis_url",
        )
    if not is_embedded(config.redis_url):
        return config.redis_url
    from lowkiq_lambda.development import refuse_in_deployment  # noqa: PLC0415 - imported lazily: not in a deployment
    from lowkiq_lambda.local.embedded.shared import attach  # noqa: PLC0415 - imported lazily: needs an extra

    refuse_in_deployment(f"redis_url={config.redis_url!r} is for development", os.environ)
    return attach(config, os.environ).url


def connect_backend(  # noqa: PLR0913, PLR0917 - the parts of a backend
    config: Config, url: str, clock: Clock, new_time: Callable[[Clock], NodeTime], connections: int, timeout: float
) -> Backend:
    """A backend with so many connections at most, whose calls wait `timeout` seconds for an answer."""
    client = connect(
        url,
        max_connections=connections,
        timeout=timeout,
        pool_timeout=config.pool_timeout,
        credentials=config.credentials,
        clock=clock,
    )
    # Spreads attempts in time, protects nothing.
    rng = Random()  # noqa: S311 - as said above
    backend = Backend(client, clock, partial(new_time, clock), clock.sleep, rng)
    backend.lease_ttl = config.lease_ttl
    return backend


def new_waker(config: Config, backend: Backend) -> "Waker | None":
    """What starts drains of shards after a push, if the settings ask for one."""
    if config.start_drain is None and config.wake_function is None:
        return None
    from lowkiq_lambda.store.shard.waking import Waker  # noqa: PLC0415 - imported lazily: cold start

    return Waker(backend, config.start_drain or _starter(str(config.wake_function)), config.wake_window)


def reset_advice(config: Config, queue_name: str) -> str | None:
    """How to remove a queue that has another declaration; None where its jobs may matter."""
    if not is_embedded(config.redis_url):
        return None
    from lowkiq_lambda.local.embedded.shared import reset_command  # noqa: PLC0415 - imported lazily: needs an extra

    return f"as this is the embedded server, run `{reset_command(queue_name, config, os.environ)}`"


def _starter(function: str) -> "StartDrain":
    from lowkiq_lambda.aws.waking import LambdaStarter  # noqa: PLC0415 - imported lazily: needs an extra

    return LambdaStarter(function)
