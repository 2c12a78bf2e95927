"""The server that settings of AWS name: the URL of a secret, and how to sign in to it."""

import os
from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.aws import Settings

_PACKAGES: Final = frozenset({"aws_lambda_powertools", "boto3", "botocore"})


def redis_settings(settings: Settings) -> dict[str, Any]:
    """The settings of an app that follow: none, `redis_url`, `credentials`. Raises ConfigError."""
    try:
        return {**_of_secret(settings), **_of_iam(settings)}
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        message = f"LOWKIQ_REDIS_SECRET_ARN needs {package}: install lowkiq-lambda[aws]."
        raise ConfigError(message, setting="redis_secret_arn") from error


def _of_secret(settings: Settings) -> dict[str, Any]:
    if not settings.redis_secret_arn:
        return {}
    from lowkiq_lambda.providers.aws.secrets import RedisSecret  # noqa: PLC0415 - only where a secret is named

    secret = RedisSecret(settings.redis_secret_arn, server=os.environ.get("LOWKIQ_REDIS_URL", "").strip())
    # Each new connection asks the secret for the password, so that a rotation ends no connection.
    return {"redis_url": secret.url, **({"credentials": secret} if secret.login else {})}


def _of_iam(settings: Settings) -> dict[str, Any]:
    if not (iam := settings.redis_iam):
        return {}
    from lowkiq_lambda.providers.aws.iam import IamCredentials  # noqa: PLC0415 - only where tokens are asked for

    credentials = IamCredentials(user=iam.user, cache=iam.cache, service=iam.service, serverless=iam.serverless)
    return {"credentials": credentials}
