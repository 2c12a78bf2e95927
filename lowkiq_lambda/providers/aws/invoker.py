"""The one call of Lambda's API: start a function, and do not wait for it."""

import json
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.providers.aws.clients import connect

_ACCEPTED: Final = 202
_HINTS: Final = {
    "AccessDeniedException": "its caller lacks the right: grant the role lambda:InvokeFunction on it",
    "ResourceNotFoundException": "there is no such function: correct the name or ARN",
    "TooManyRequestsException": "Lambda takes no more invocations now",
    "ExpiredTokenException": "the credentials have expired",
    "RecursiveInvocationException": "Lambda took it for a runaway: set RecursiveLoop to Allow on the function",
}


class InvocationRefused(LowkiqError):
    """A function could not be started: Lambda refused the invocation."""


class LambdaUnreachable(InvocationRefused):
    """Lambda's API cannot be reached: in a VPC it takes a NAT gateway, or an interface endpoint for lambda, or IPv6."""


class Invoker(Protocol):
    """Starts functions."""

    def invoke(self, function: str, event: Mapping[str, object]) -> None:
        """Hand the event to the function (its name or ARN), which runs later. Raises InvocationRefused."""
        ...


class LambdaInvoker:
    """By boto3, which is imported with the first invocation, or by `prepare`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._client: Any = None
        self._lock = threading.Lock()

    def invoke(self, function: str, event: Mapping[str, object]) -> None:
        """As the protocol documents it; a few seconds at most, if Lambda's API does not answer."""
        client = self._connected()
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as boto3

        payload = json.dumps(event).encode()
        try:
            answer = client.invoke(FunctionName=function, InvocationType="Event", Payload=payload)
        except (BotoCoreError, ClientError) as error:
            raise _translated(function, error) from error
        if answer["StatusCode"] != _ACCEPTED:
            raise InvocationRefused(f"{function} was not started: Lambda answered {answer['StatusCode']}.")

    def prepare(self) -> None:
        """Import boto3 and read what it knows of the API, which takes half a second. Raises InvocationRefused."""
        self._connected()

    def _connected(self) -> Any:  # noqa: ANN401 - boto3 makes its clients' classes when it runs
        with self._lock:
            if self._client is None:
                self._client = connect("lambda", "Invoking functions", InvocationRefused)
            return self._client


@cache
def shared_invoker() -> LambdaInvoker:
    """One for all of a process: its connections stay open."""
    return LambdaInvoker()


def _translated(function: str, error: Exception) -> InvocationRefused:
    """The error of botocore as a sentence with the next step."""
    from botocore import exceptions  # noqa: PLC0415 - as boto3

    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return LambdaUnreachable(f"{function} was not started: {LambdaUnreachable()} ({error})")
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, exceptions.ClientError) else ""
    why = f"{_HINTS[code]} ({error})" if code in _HINTS else str(error)
    return InvocationRefused(f"{function} was not started: {why}")
