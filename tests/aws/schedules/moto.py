"""AWS's Scheduler as moto has it: a second view of the API, by people who had no hand in the local cloud."""

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import boto3

from tests.kit.servers.cloud import ACCOUNT, REGION
from tests.kit.servers.ports import HOST, free_port
from tests.kit.waiting import eventually

_PROGRAM: Final = Path(__file__).parents[3] / ".tools" / "moto" / "bin" / "moto_server"


class Moto:
    """A server of moto in a process of its own; what it holds is gone when it ends."""

    def __enter__(self) -> Self:
        assert _PROGRAM.exists(), f"there is no moto at {_PROGRAM}: run `make setup`"
        self.url = f"http://{HOST}:{free_port()}"
        self._process = subprocess.Popen(
            [_PROGRAM, "-H", HOST, "-p", self.url.rpartition(":")[2]],
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "MOTO_ACCOUNT_ID": ACCOUNT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(self._answers, timeout=60.0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program takes it for AWS."""
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        return {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", **keys}

    def client(self, service: str) -> Any:
        """A client of one of its services."""
        session: Any = boto3.session.Session("testing", "testing", region_name=REGION)
        return session.client(service, endpoint_url=self.url)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, int(self.url.rpartition(":")[2])), timeout=1.0):
            return True
        return False
