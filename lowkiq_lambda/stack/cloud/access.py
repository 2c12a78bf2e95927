"""The way to a local cloud that runs, in this process or in another one."""

import json
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

HOST: Final = "127.0.0.1"
REGION: Final = "us-east-1"


class CloudAccess:
    """Its port on loopback, and a key that it takes."""

    rest: float = 0.05
    """Seconds from one look at a stack that changes to the next."""

    def __init__(self, port: int, key: str, secret: str) -> None:
        self.port = port
        self.key = key
        self.secret = secret
        self._clients: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """Where all of AWS is."""
        return f"http://{HOST}:{self.port}"

    @property
    def access(self) -> str:
        """Where it is, and the key of this run, for the eyes of its user."""
        return f"{self.url}  (key {self.key}, secret {self.secret})"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program takes it for AWS."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str) -> Any:  # noqa: ANN401 - the types of boto3 know only services with stubs
        """A boto3 client of the service, the same one for each call; it tries nothing twice."""
        if service not in self._clients:
            import boto3  # noqa: PLC0415 - takes half a second, and most tests have no use for it
            from botocore.config import Config  # noqa: PLC0415 - as boto3

            session: Any = boto3.session.Session(self.key, self.secret, region_name=REGION)
            self._clients[service] = session.client(
                service,
                endpoint_url=self.url,
                config=Config(retries={"total_max_attempts": 1}, read_timeout=120, s3={"addressing_style": "path"}),
            )
        return self._clients[service]

    def close_clients(self) -> None:
        """Close the connections of all clients."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def answers(self) -> bool:
        """Whether it runs."""
        try:
            with urlopen(f"{self.url}/_ministack/health", timeout=5) as answer:  # noqa: S310 - our own http
                json.load(answer)
        except (OSError, URLError, ValueError):
            return False
        return True
