"""`lowkiq stack invoke`: a function's handler, played without AWS."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.parts import AppOption, app_spec, command_app, number
from lowkiq_lambda.local.invoke import Function, play
from lowkiq_lambda.local.logs import set_up_logs

_HELP: Final = """
Play an event against the handler that Lambda would call, without AWS.

The handler runs in this process, with this environment, and what it returns is printed as JSON; what it logs goes \
to the standard error. Without a Redis URL, or with embedded:, it is the embedded server that \
`lowkiq run` uses. When the time is over the process ends, as it does on Lambda.
"""
_EPILOGUE: Final = """
EVENTS
  drain      {"shard": 3}                    shard 3 of every queue with one
             {"queue": "Greet", "shard": 3}  one shard
             {"queue": "Greet"}              one queue
             {}                              everything, most lagging first
             {"tick": true}                  the app's tick, then everything
             {"tick": "only"}                the tick alone
  dashboard  a request as API Gateway sends it, in its format 2.0
  ingest     what SQS, EventBridge, S3 or a stream of DynamoDB sends

SETTINGS come from the environment, as they do on Lambda: LOWKIQ_REDIS_URL,
LOWKIQ_RESERVE, LOWKIQ_DASHBOARD_PASSWORD and so on.

EXIT CODES
  0  The handler returned.
  1  The handler raised an error, or did not come back in time.
  2  The command line, the settings or the app cannot work.

EXAMPLES
  What a schedule does each minute for shard 0, with ten seconds to do it in:
    lowkiq stack invoke shop.jobs:app \\
      --event '{"shard": 0}' --timeout 10
  An event from a file, and only one field of the answer:
    lowkiq stack invoke shop.jobs:app --event @event.json \\
      | python -c 'import json, sys; print(json.load(sys.stdin)["reason"])'
"""

command: Final = command_app(
    "invoke", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stack invoke [OPTIONS] [MODULE:APP]"
)


@command.default
def invoke(
    app: AppOption = None,
    *,
    function: Annotated[Function, Parameter(help="Whose handler.")] = "drain",
    event: Annotated[str, Parameter(help="The event as JSON, or @ and the name of a file that has it.")] = "{}",
    timeout: Annotated[
        float,
        Parameter(converter=number(0, 900, is_least_allowed=False), help="Seconds after which the process is ended."),
    ] = 60.0,
    data_dir: Annotated[Path | None, Parameter(help="The folder of the embedded server.")] = None,
) -> int:
    """Play one event; the exit code."""
    set_up_logs("info", "text", sys.stderr)
    return play(app_spec(app, os.environ), function, _read_event(event), timeout, data_dir)


def _read_event(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError(f"The event cannot be read from {text[1:]}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The event is not JSON: {error}.") from error
