"""The warm state of a function between invocations: the settings and the app, with its connections and scripts.

It is made at the first need and kept as long as the execution environment lives. A failure is not kept: the next
invocation tries again.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Final

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.logs import Context
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.config import Config, variable_of
from lowkiq_lambda.settings.loading import load_app

logger = logging.getLogger(__name__)

TO_ANSWER: Final = 0.5
"""Seconds that are left to the answer itself."""
DASHBOARD: Final = "LOWKIQ_DASHBOARD_"
"""How the variables of the dashboard begin."""


class Environment(msgspec.Struct, frozen=True):
    """The settings of the function, and the app that knows how to reach Redis."""

    settings: Settings
    app: Lowkiq

    def before_answer(self, context: Context) -> None:
        """Call the app's hooks with what is left of the reserve; what one raises is logged, and changes no answer."""
        for hook in self.app.before_answer:
            left = context.get_remaining_time_in_millis() / 1_000 - TO_ANSWER
            if left > 0:
                try:
                    hook(min(left, self.settings.reserve))
                except Exception:
                    logger.exception("what was to be called before the answer raised")


@contextmanager
def answering(context: Context) -> Iterator[None]:
    """Around an invocation: `app.before_answer` is called when it is through, also where it raises."""
    try:
        yield
    finally:
        # Without an app there is nothing to be called; what went wrong with it is told already.
        if environment.cache_info().currsize:
            environment().before_answer(context)


@cache
def environment() -> Environment:
    """The one of this process. Raises ConfigError or AppNotFound, in a sentence that says what to correct."""
    _warn_of_unknown_variables()
    settings = Settings.from_env(os.environ)
    if settings.app is None:
        raise ConfigError("No app is named: set LOWKIQ_APP to MODULE:APP, such as shop.jobs:app.", setting="app")
    app = load_app(settings.app, Lowkiq)
    find_redis(app, settings)
    if not app.workers:
        raise ConfigError(f"{settings.app} declares no worker: import the modules that declare them.", setting="app")
    if app.core.housekeeping.alerts:
        logger.warning(
            "no function sends the alerts of Config(alert=...): without a daemon beside the stack nobody does. The "
            "stack's alarms tell the topic of its parameter AlarmTopicArn"
        )
    return Environment(settings, app)


def flushing(app: Lowkiq, context: Context) -> AbstractContextManager[None]:
    """Around an invocation: a flush behind it where pushes may be kept, as a frozen environment delivers nothing.

    Raises NotFlushed where jobs are left then.
    """
    if app.config.when_unavailable == "raise":
        return nullcontext()
    from lowkiq_lambda.push.flushing import flush_behind  # noqa: PLC0415 - only where pushes may be kept

    return flush_behind(app.flush, context)


def _warn_of_unknown_variables() -> None:
    variables = {variable_of(name) for name in (*Config.kinds(), *Settings.kinds())}
    # Those of the dashboard are the concern of its function.
    names = [name for name in os.environ if name.startswith("LOWKIQ_") and not name.startswith(DASHBOARD)]
    if not variables.issuperset(names):
        from lowkiq_lambda.declare.misspelling import unknown_variables  # noqa: PLC0415 - imported lazily: cold start

        for sentence in unknown_variables(names, Config, Settings):
            logger.warning(sentence)


def find_redis(app: Lowkiq, settings: Settings) -> None:
    """Tell the app where its Redis is, and how to sign in, as the settings say. Raises ConfigError."""
    # An app without settings of its own has read them there, with the rest of the environment.
    if (
        (settings.redis_secret_arn or settings.redis_iam)
        and app.config.redis is None
        and not app.core.connections.reads_environment
    ):
        from lowkiq_lambda.providers.aws.redis_server import redis_settings  # noqa: PLC0415 - only where it is asked for

        app.core.configure(**redis_settings(settings))
    if not app.config.names_server:
        raise ConfigError("No Redis is named: set LOWKIQ_REDIS_URL or LOWKIQ_REDIS_SECRET_ARN.", setting="redis_url")
    if app.config.redis is None:
        _ = app.core.connections.url  # refused here where it is for development
