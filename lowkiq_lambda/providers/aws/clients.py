"""Clients of AWS's APIs, by boto3, which is imported with the first of them: most functions never need it."""

import os
from typing import Any, Final

from lowkiq_lambda.base.errors import LowkiqError

CONNECT_TIMEOUT: Final = 1.0
READ_TIMEOUT: Final = 5.0
ATTEMPTS: Final = 2


def connect(service: str, what: str, refused: type[LowkiqError], region: str | None = None) -> Any:  # noqa: ANN401 - boto3 makes its clients' classes when it runs
    """A client that gives up after some seconds. `what` needs it, as the sentence of the error `refused` says."""
    try:
        import boto3  # noqa: PLC0415 - slow to import, and most functions never need it
        from botocore.config import Config  # noqa: PLC0415 - as boto3
        from botocore.exceptions import BotoCoreError, NoRegionError  # noqa: PLC0415 - as boto3
    except ImportError as error:
        raise refused(f"{what} takes boto3: install lowkiq-lambda[aws].") from error
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
    )
    try:
        # boto3 itself knows only AWS_DEFAULT_REGION.
        return boto3.session.Session().client(
            service, region_name=region or os.environ.get("AWS_REGION") or None, config=config
        )
    except NoRegionError as error:
        raise refused(f"{what} is not possible: name a region, set AWS_REGION.") from error
    except BotoCoreError as error:
        raise refused(f"{what} is not possible: {error}") from error
