"""Finds the AWS credentials of this process."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowkiq_lambda.base.errors import BackendDenied
from lowkiq_lambda.providers.aws.signing import Keys

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session


class Keychain:
    """Those that the environment names, as Lambda does, else what botocore finds: a profile, a container, a machine.

    botocore is imported in the latter case only, and keeps them fresh.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._session: Session | None = None
        self._found: Credentials | None = None

    def keys(self) -> Keys:
        """What is good now. Raises BackendDenied where there are none, or none that can be had."""
        environ = self._environ
        access_key, secret_key = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
        if access_key and secret_key:
            return Keys(access_key, secret_key, environ.get("AWS_SESSION_TOKEN"))
        return self._searched()

    def region(self) -> str:
        """The region that this process is in. Raises BackendDenied where it is not said."""
        environ = self._environ
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        region = region or self._opened().get_config_variable("region")
        if not region:
            raise BackendDenied("The AWS region is not known: set AWS_REGION, or give `region`.")
        return str(region)

    def _searched(self) -> Keys:
        session = self._opened()
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - only where the environment names none

        try:
            self._found = self._found or session.get_credentials()
            # Not kept: these expire, and what was found renews them.
            frozen = self._found and self._found.get_frozen_credentials()
        except (BotoCoreError, RuntimeError) as error:
            raise BackendDenied(f"The AWS credentials cannot be had: {type(error).__name__}: {error}") from error
        if not frozen or not frozen.access_key or not frozen.secret_key:
            raise BackendDenied(
                "There are no AWS credentials to sign in to Redis with: give the function, container or machine a "
                "role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    def _opened(self) -> "Session":
        if self._session is None:
            try:
                from botocore.session import Session  # noqa: PLC0415 - slow to import, and not needed on Lambda
            except ImportError:
                raise BackendDenied(
                    "The environment does not name AWS credentials and region, and botocore, which would look "
                    "further, is not installed: install lowkiq-lambda[aws]."
                ) from None
            self._session = Session()
        return self._session
