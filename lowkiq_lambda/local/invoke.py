"""The functions on this machine: an event is played against the handler that Lambda would call."""

import importlib
import json
import os
import sys
import tempfile
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Final, Literal, TypeAlias
from uuid import uuid4

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.loading import load_app

Function: TypeAlias = Literal["drain", "dashboard", "ingest"]

ANSWERED: Final = 0
FAILED: Final = 1
"""Exit codes: the handler returned; it raised, or did not come back in time."""

_HANDLER: Final = "handler"
# The entrances don't import one another: a Lambda function does not use a terminal, and a machine without AWS's
# libraries cannot use the functions. The handler is chosen at run time, so it is found by its name.
_MODULES: Final[dict[Function, str]] = {
    "drain": "lowkiq_lambda.aws.drain_function",
    "dashboard": "lowkiq_lambda.aws.dashboard_function",
    "ingest": "lowkiq_lambda.aws.ingest_function",
}
_SECRETS: Final = ("LOWKIQ_REDIS_SECRET_ARN", "LOWKIQ_REDIS_IAM")


class LocalContext:
    """The context of an invocation, as Lambda passes it to a handler."""

    memory_limit_in_mb = "512"
    function_version = "$LATEST"
    client_context = None
    identity = None

    def __init__(self, function_name: str, timeout: float) -> None:
        self.function_name = function_name
        self.invoked_function_arn = f"arn:aws:lambda:local:000000000000:function:{function_name}"
        self.aws_request_id = str(uuid4())
        self.log_group_name = f"/aws/lambda/{function_name}"
        self.log_stream_name = "local"
        self._ends_at = monotonic() + timeout

    def get_remaining_time_in_millis(self) -> int:
        """How long until the process ends, come what may."""
        return max(0, int(1_000 * (self._ends_at - monotonic())))


def play(spec: str, function: Function, event: object, timeout: float, data_dir: Path | None) -> int:
    """Play the event and print the answer as JSON; the exit code. Raises LowkiqError. Ends the process in time."""
    os.environ["LOWKIQ_APP"] = spec
    if not any(os.environ.get(name) for name in _SECRETS):
        from lowkiq_lambda.app import Lowkiq  # noqa: PLC0415 - the help of the command needs no client of Redis
        from lowkiq_lambda.local.serving import server_for  # noqa: PLC0415 - as above

        app = load_app(spec, Lowkiq)
        server_for(app, data_dir, Path(tempfile.gettempdir()))
        if app.config.redis is None:
            # Found before this plays Lambda, because Lambda refuses the embedded server.
            os.environ["LOWKIQ_REDIS_URL"] = app.core.connections.url
    os.environ.setdefault("AWS_LAMBDA_FUNCTION_NAME", f"lowkiq-{function}")
    return _invoke(function, event, timeout)


def _invoke(function: Function, event: object, timeout: float) -> int:
    # On Lambda the standard output is the log, and the answer goes elsewhere.
    with redirect_stdout(sys.stderr):
        try:
            handler = getattr(importlib.import_module(_MODULES[function]), _HANDLER)
        except ModuleNotFoundError as error:
            raise ConfigError(f"The function needs {error.name}: install lowkiq-lambda[aws].") from error
        context = LocalContext(os.environ["AWS_LAMBDA_FUNCTION_NAME"], timeout)
        end = Timer(timeout, _end, [timeout])
        end.daemon = True
        end.start()
        try:
            answer, code = handler(event, context), ANSWERED
        except Exception as error:  # noqa: BLE001 - any exception is its answer, as on Lambda
            traceback.print_exc()
            answer, code = {"errorMessage": str(error), "errorType": type(error).__name__}, FAILED
        end.cancel()
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    return code


def _end(timeout: float) -> None:
    """As on Lambda: at once, and whatever runs."""
    sys.stderr.write(f"error: the handler did not come back in {timeout:g} s; Lambda ends the process, so does this.\n")
    sys.stderr.flush()
    os._exit(FAILED)
