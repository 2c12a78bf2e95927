"""The functions on this machine: `python -m lowkiq_lambda.local.invoke` plays events against the real handlers."""

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
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import uuid4

import cyclopts
from cyclopts import Group, Parameter
from cyclopts.validators import Number

from lowkiq_lambda.config import Config
from lowkiq_lambda.errors import ConfigError, LowkiqError
from lowkiq_lambda.loading import AppNotFound, load_app
from lowkiq_lambda.local.logs import set_up_logs
from lowkiq_lambda.local.serving import server_for

Function: TypeAlias = Literal["drain", "dispatch", "dashboard"]

FAILED: Final = 1
MISUSED: Final = 2
"""Exit codes: the handler raised, or did not come back in time; what was asked for cannot work."""

_HANDLER: Final = "handler"
# The entrances import nothing of one another: what runs on Lambda has no use for a terminal, and a machine without
# AWS's libraries none for the functions. Which handler is played is known only now, so it is found by its name.
_MODULES: Final[dict[Function, str]] = {
    "drain": "lowkiq_lambda.aws.drain_function",
    "dispatch": "lowkiq_lambda.aws.dispatch_function",
    "dashboard": "lowkiq_lambda.aws.dashboard_function",
}
_OPTIONS: Final = Group("Options")
_SECRETS: Final = ("LOWKIQ_REDIS_SECRET_ARN", "LOWKIQ_REDIS_IAM_USER")

_HELP: Final = """
Play an event against the handler that Lambda would call, without AWS.

The handler runs in this process, with this environment, and what it returns is printed as JSON; what it logs goes \
to the standard error. Without a Redis URL, or with embedded:, it is the embedded server that \
`python -m lowkiq_lambda.local` uses. When the time is over the process ends, as it does on Lambda.
"""
_EPILOGUE: Final = """
EVENTS
  drain      {"shard": 3}                    shard 3 of every queue that has one
             {"queue": "Greet", "shard": 3}  one shard
             {"queue": "Greet"}              one queue
             {}                              everything, most lagging first
  dispatch   {}
  dashboard  a request as API Gateway sends it, in its format 2.0

SETTINGS come from the environment, as they do on Lambda: LOWKIQ_REDIS_URL,
LOWKIQ_RESERVE, LOWKIQ_DASHBOARD_PASSWORD and so on.

EXIT CODES
  0  The handler returned.
  1  The handler raised an error, or did not come back in time.
  2  The command line, the settings or the app cannot work.

EXAMPLES
  What a schedule does each minute for shard 0, with ten seconds to do it in:
    python -m lowkiq_lambda.local.invoke shop.jobs:app \\
      --event '{"shard": 0}' --timeout 10
  An event from a file, and only one field of the answer:
    python -m lowkiq_lambda.local.invoke shop.jobs:app --event @event.json \\
      | python -c 'import json, sys; print(json.load(sys.stdin)["reason"])'
"""

cli = cyclopts.App(
    name="python -m lowkiq_lambda.local.invoke",
    help=_HELP,
    help_epilogue=_EPILOGUE,
    help_format="plaintext",
    version_flags=[],
    group_arguments=_OPTIONS,
    group_commands=_OPTIONS,
    group_parameters=_OPTIONS,
    usage="Usage: python -m lowkiq_lambda.local.invoke [OPTIONS] [MODULE:APP]",
)


class Context:
    """What Lambda tells a handler of its invocation."""

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


@cli.default
def run(
    app: Annotated[str | None, Parameter(name="MODULE:APP", help="The app; else LOWKIQ_APP.")] = None,
    /,
    *,
    function: Annotated[Function, Parameter(help="Whose handler.")] = "drain",
    event: Annotated[str, Parameter(help="The event as JSON, or @ and the name of a file that has it.")] = "{}",
    timeout: Annotated[
        float, Parameter(validator=Number(gt=0, lte=900), help="Seconds until the process is ended.")
    ] = 60.0,
    data_dir: Annotated[Path | None, Parameter(help="Where the embedded server keeps its files.")] = None,
) -> int:
    """Play one event; the exit code."""
    set_up_logs("info", "text", sys.stderr)
    try:
        environment = Config.from_env(os.environ)
        spec = app or environment.app
        if spec is None:
            raise ConfigError("No app is named: give MODULE:APP, or set LOWKIQ_APP.")
        return _play(spec, function, _read_event(event), timeout, data_dir)
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        sys.stderr.write(f"error: {error}\n")
        return MISUSED


def main() -> None:
    """Run the command line and exit."""
    cli()


def _play(spec: str, function: Function, event: object, timeout: float, data_dir: Path | None) -> int:
    os.environ["LOWKIQ_APP"] = spec
    if not any(os.environ.get(name) for name in _SECRETS):
        app = load_app(spec)
        server_for(app, data_dir, Path(tempfile.gettempdir()))
        # Found before this plays Lambda, where the embedded server is refused.
        os.environ["LOWKIQ_REDIS_URL"] = app.redis_url
    os.environ.setdefault("AWS_LAMBDA_FUNCTION_NAME", f"lowkiq-{function}")
    return _invoke(function, event, timeout)


def _invoke(function: Function, event: object, timeout: float) -> int:
    # On Lambda the standard output is the log, and the answer goes elsewhere.
    with redirect_stdout(sys.stderr):
        try:
            handler = getattr(importlib.import_module(_MODULES[function]), _HANDLER)
        except ModuleNotFoundError as error:
            raise ConfigError(f"The function needs {error.name}: install lowkiq_lambda[aws].") from error
        context = Context(os.environ["AWS_LAMBDA_FUNCTION_NAME"], timeout)
        end = Timer(timeout, _end, [timeout])
        end.daemon = True
        end.start()
        try:
            answer, code = handler(event, context), 0
        except Exception as error:  # noqa: BLE001 - whatever it raises is its answer, as on Lambda
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


def _read_event(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError(f"The event cannot be read from {text[1:]}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The event is not JSON: {error}.") from error


if __name__ == "__main__":
    main()
