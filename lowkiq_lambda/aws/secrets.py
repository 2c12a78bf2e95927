"""Reads a secret from AWS Secrets Manager."""

from typing import Any, Final

from lowkiq_lambda.errors import ConfigError

TIMEOUT: Final = 5.0
"""Seconds that connecting may take, and an answer: a function in a VPC without a way out would wait for minutes."""


def secret_text(arn: str, setting: str) -> str:
    """The text of the secret; `setting` is what named it. Calls AWS. Raises ConfigError where it cannot be had."""
    import boto3  # noqa: PLC0415 - only where a secret is named: slow to import
    from botocore.config import Config as BotoConfig  # noqa: PLC0415 - as boto3
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as boto3

    options = BotoConfig(connect_timeout=TIMEOUT, read_timeout=TIMEOUT, retries={"total_max_attempts": 2})
    try:
        client = boto3.client("secretsmanager", region_name=_region(arn), config=options)
        answer: dict[str, Any] = dict(client.get_secret_value(SecretId=arn))
    except (BotoCoreError, ClientError) as error:
        raise _refused(setting, f"the secret {arn} cannot be read: {error}") from error
    text = answer.get("SecretString")
    if not isinstance(text, str) or not text.strip():
        raise _refused(setting, f"the secret {arn} holds no text")
    return text.strip()


def _region(arn: str) -> str | None:
    """The region that an ARN names; None for a plain name, which is looked for in the function's own."""
    parts = arn.split(":")
    return parts[3] if parts[0] == "arn" and parts[3:] else None


def _refused(setting: str, why: str) -> ConfigError:
    return ConfigError(f"LOWKIQ_{setting.upper()} does not help: {why}.", setting=setting)
