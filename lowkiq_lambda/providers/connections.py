"""The settings of an app, and the connections that it has opened by them: each at its first use."""

import os
import threading
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import key_prefix
from lowkiq_lambda.store.shard.nodes import GivenTime, NodeTime, ServerTime

_AWS_NAMES: Final = ("LOWKIQ_REDIS_SECRET_ARN", "LOWKIQ_REDIS_IAM")
"""Settings of AWS that name the server, or the user that signs in to it."""


class Connections:
    """Those of one app. `clock` is for tests: with one, time is what it says, on the server too."""

    def __init__(
        self, config: Config | None, clock: Clock | None, new_backend: Callable[..., Backend] = Backend
    ) -> None:
        value: object = config
        if not (value is None or isinstance(value, Config)):
            raise ConfigError(
                f"Lowkiq takes a Config, not {type(value).__name__}: write Lowkiq(Config(redis_url=...))."
            )
        self.clock: Clock = clock or SystemClock()
        self.new_time: Callable[[Clock], NodeTime] = GivenTime if clock else ServerTime
        self.opened: list[Backend] = []
        """Each has connections of its own."""
        self.has_made_task = False
        """Whether this process has made a task on the server."""
        self.reads_environment: Final = config is None
        self._new_backend = new_backend
        self._config = config
        self._url: str | None = None
        self._backend: Backend | None = None
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError for a bad one in the environment."""
        with self._lock:
            if self._config is None:
                self._config = _config_of_environment()
            return self._config

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings. Raises ConfigError, also once connections have been opened by the old ones."""
        with self._lock:
            if self.opened:
                raise ConfigError("The app has used Redis already, so its settings stand.")
            self._config = self.config.evolve(**changes)
            self._url = None

    @property
    def url(self) -> str:
        """The URL of the server; an embedded one runs from then on. Raises ConfigError, EmbeddedServerError."""
        with self._lock:
            if self._url is None:
                # Found once: the folder of an embedded server may depend on the current one.
                self._url = _server_url(self.config) if self.config.redis is None else self._place_of_client()
            return self._url

    @property
    def backend(self) -> Backend:
        """The connections that pushes and operators' requests share."""
        with self._lock:
            if self._backend is None:
                self._backend = self.open(self.config.client_pool_size, self.config.redis_timeout)
            return self._backend

    @property
    def opened_backend(self) -> Backend | None:
        """`backend`, if it has been opened."""
        return self._backend

    def open(self, connections: int, timeout: float) -> Backend:
        """Connections of their own: so many at most, whose calls wait `timeout` seconds for an answer."""
        config, clock = self.config, self.clock
        client = connect(
            self.url if config.redis is None else "",
            max_connections=connections,
            timeout=timeout,
            pool_timeout=config.pool_timeout,
            credentials=config.credentials,
            clock=clock,
            client=config.redis,
        )
        # Spreads attempts in time, protects nothing.
        rng = Random()  # noqa: S311 - as said above
        backend = self._new_backend(client, clock, partial(self.new_time, clock), clock.sleep, rng)
        backend.lease_ttl = config.lease_ttl
        backend.prefix = key_prefix(config.namespace)
        if config.wait_replicas:
            from lowkiq_lambda.store.shard.replicas import Waits  # noqa: PLC0415 - imported lazily: most wait for none

            backend.replicated = Waits(backend, config.wait_replicas, timeout).send
        self.opened.append(backend)
        return backend

    def uses(self, feature: str) -> bool:
        """Whether a queue has been seen to use the feature, which its declaration does not tell."""
        return any(backend.uses(feature) for backend in self.opened)

    def close(self) -> None:
        """Close what was opened, but not a client that the settings gave: it may have other users."""
        for backend in self.opened if self.config.redis is None else ():
            backend.client.close()

    def _place_of_client(self) -> str:
        from lowkiq_lambda.store.server.given_client import place_of  # noqa: PLC0415 - imported lazily: a plug

        return place_of(self.backend.client)


def reset_advice(config: Config, queue_name: str) -> str | None:
    """How to remove a queue that has another declaration; None on a server whose jobs may matter."""
    if not is_embedded(config.redis_url):
        return None
    from lowkiq_lambda.providers.embedded.shared import reset_command  # noqa: PLC0415 - imported lazily: needs an extra

    return f"as this is the embedded server, run `{reset_command(queue_name, config, os.environ)}`"


def _config_of_environment() -> Config:
    """The settings that the environment has, and the server that those of AWS name there. Raises ConfigError."""
    if not any(map(os.environ.get, _AWS_NAMES)):
        return Config.from_env(os.environ)
    from lowkiq_lambda.providers.aws.redis_server import redis_settings  # noqa: PLC0415 - only where it is asked for
    from lowkiq_lambda.settings.aws import Settings  # noqa: PLC0415 - as above

    return Config.from_env(os.environ, **redis_settings(Settings.from_env(os.environ)))


def _server_url(config: Config) -> str:
    """The URL of the server that the settings name; an embedded one is started.

    Raises ConfigError, and EmbeddedServerError if that server does not start.
    """
    if config.redis_url is None:
        raise ConfigError(
            f"No Redis is named. For development set LOWKIQ_REDIS_URL={EMBEDDED} (starts a real Valkey for this "
            "project); else set it to your server. A test takes the fixture lowkiq.",
            setting="redis_url",
        )
    if not is_embedded(config.redis_url):
        return config.redis_url
    from lowkiq_lambda.providers.embedded.shared import attach  # noqa: PLC0415 - imported lazily: needs an extra
    from lowkiq_lambda.settings.development import refuse_in_deployment  # noqa: PLC0415 - imported lazily: not in a deployment

    refuse_in_deployment(f"redis_url={config.redis_url!r} is for development", os.environ)
    return attach(config, os.environ).url
