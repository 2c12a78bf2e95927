"""AWS Secrets Manager, as far as functions ask for it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import pytest

from lowkiq_lambda.providers.aws.secrets import provider

ARN: Final = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop-redis-a1b2c3"


class SecretsManager(BaseHTTPRequestHandler):
    """What AWS Secrets Manager answers, as its API is documented."""

    secrets: dict[str, dict[str, Any]]
    asked: list[str]

    def do_POST(self) -> None:
        """GetSecretValue."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(str(self.headers["X-Amz-Target"]))
        secret = self.secrets.get(body["SecretId"])
        missing = {"__type": "ResourceNotFoundException", "message": "Secrets Manager can't find the secret."}
        answer = json.dumps(secret or missing).encode()
        self.send_response(200 if secret else 400)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def secrets_manager(monkeypatch: pytest.MonkeyPatch, secrets: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    """One that has these secrets; what it was asked for."""
    asked: list[str] = []
    served = type("Served", (SecretsManager,), {"secrets": secrets, "asked": asked})
    with HTTPServer(("127.0.0.1", 0), served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        # It knows where it found the manager before.
        provider.cache_clear()
        yield asked
        provider.cache_clear()
        server.shutdown()
        thread.join()
