"""What stays warm between the invocations of a function: the settings and the app, with its connections and scripts.

Made at the first need and kept as long as the execution environment lives. What went wrong is not kept: the next
invocation tries again.
"""

import os
from dataclasses import dataclass
from functools import cache

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.loading import load_app


@dataclass(frozen=True, slots=True)
class Environment:
    """The settings of the function, and the app that knows how to reach Redis."""

    settings: Settings
    app: Lowkiq


@cache
def environment() -> Environment:
    """The one of this process. Raises ConfigError or AppNotFound, in a sentence that says what to correct."""
    settings = Settings.from_env(os.environ)
    if settings.app is None:
        raise ConfigError("No app is named: set LOWKIQ_APP to MODULE:APP, such as shop.jobs:app.", setting="app")
    app = load_app(settings.app)
    find_redis(app, settings)
    if not app.workers:
        raise ConfigError(f"{settings.app} declares no worker: import the modules that declare them.", setting="app")
    return Environment(settings, app)


def find_redis(app: Lowkiq, settings: Settings) -> None:
    """Tell the app where its Redis is, and how to sign in, as the settings say. Raises ConfigError."""
    if settings.redis_secret_arn:
        from lowkiq_lambda.aws.secrets import RedisSecret  # noqa: PLC0415 - only where a secret is named

        secret = RedisSecret(settings.redis_secret_arn)
        # Whoever connects asks the secret for the password, so that a rotation ends nothing.
        app.configure(redis_url=secret.url, **({"credentials": secret} if secret.login else {}))
    if app.config.redis_url is None:
        raise ConfigError("No Redis is named: set LOWKIQ_REDIS_URL or LOWKIQ_REDIS_SECRET_ARN.", setting="redis_url")
    _ = app.redis_url  # refused here where it is for development
    if settings.redis_iam_user and settings.redis_iam_cache:
        from lowkiq_lambda.aws.iam import IamCredentials  # noqa: PLC0415 - only where tokens are asked for

        app.configure(
            credentials=IamCredentials(
                user=settings.redis_iam_user,
                cache=settings.redis_iam_cache,
                service=settings.redis_iam_service,
                serverless=settings.redis_iam_serverless,
            )
        )
