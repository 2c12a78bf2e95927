"""An account of AWS in the place of a local cloud, and the refusals of one that cannot be used."""

from difflib import get_close_matches
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.cloud.access import CloudAccess


class Account(CloudAccess):
    """The account of the environment's credentials, in one region. Raises ConfigError if it cannot be used."""

    rest = 5.0

    def __init__(self, region: str | None) -> None:
        super().__init__(0, "", "")
        try:
            self._session: Any = boto3.session.Session(region_name=region)
        except BotoCoreError as error:  # a profile that does not exist
            raise ConfigError(f"AWS cannot be used: {error}.") from error
        self.region = self._checked_region()
        self.id = self._checked_id()

    @property
    def url(self) -> str:
        """Where buckets are, each below its name."""
        return str(self.client("s3").meta.endpoint_url)

    def client(self, service: str) -> Any:  # noqa: ANN401 - as of a local cloud
        """A boto3 client of the service, which tries again what AWS throttles."""
        if service not in self._clients:
            config = Config(retries={"mode": "standard", "total_max_attempts": 8})
            client = self._session.client(service, region_name=self.region, config=config)
            # The oldest region is the only one that a new bucket must not name.
            if service == "s3" and self.region != "us-east-1":
                client.meta.events.register("provide-client-params.s3.CreateBucket", self._with_place)
            self._clients[service] = client
        return self._clients[service]

    def _with_place(self, params: dict[str, Any], **_: object) -> dict[str, Any]:
        return {**params, "CreateBucketConfiguration": {"LocationConstraint": self.region}}

    def _checked_region(self) -> str:
        region = self._session.region_name
        if not region:
            raise ConfigError("No region is set. Give --region, such as --region eu-west-1, or AWS_DEFAULT_REGION.")
        regions = self._session.get_available_regions("lambda")
        if region not in regions:
            near = get_close_matches(region, regions, 3)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"AWS has no region {region!r}.{meant}")
        return str(region)

    def _checked_id(self) -> str:
        try:
            return str(self.client("sts").get_caller_identity()["Account"])
        except NoCredentialsError as error:
            raise ConfigError(
                "There are no credentials of AWS. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
                "or use --local, which needs no account."
            ) from error
        except (BotoCoreError, ClientError) as error:
            raise ConfigError(f"AWS refuses these credentials: {error}") from error
