"""`lowkiq dashboard`: the dashboard of an app, without a daemon beside it."""

import sys
from signal import SIGINT, SIGTERM, signal
from threading import Event
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.parts import AppOption, command_app
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.local.logs import LogLevel, set_up_logs

_HELP: Final = """
Serve the dashboard of an app at HOST:PORT, or at PORT of this machine alone. No job is performed.
"""
_EPILOGUE: Final = """
SETTINGS, from the environment
  LOWKIQ_DASHBOARD_ACCOUNTS
             a password for each person, name:role:password, by commas; the
             role is operator or reader. Without one the dashboard serves this
             machine alone, with a password that is made up and printed
  LOWKIQ_DASHBOARD_PASSWORD
             a password that all operators share, who have no names then
  LOWKIQ_DASHBOARD_TRUSTED_PROXIES
             addresses of the proxies in front of it, whose headers name the
             caller

EXIT CODES
  0  It was ended by Ctrl-C or TERM.
  2  The command line, the settings or the app cannot work; or another program
     listens there.
  3  The embedded server does not start.

EXAMPLES
  At http://127.0.0.1:8080/:
    lowkiq dashboard
  For others, each with a password of their own:
    LOWKIQ_DASHBOARD_ACCOUNTS=olga:operator:... lowkiq dashboard 0.0.0.0:9000
"""
_DEFAULT: Final = "127.0.0.1:8080"

command: Final = command_app(
    "dashboard", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq dashboard [OPTIONS] [[HOST:]PORT]"
)


@command.default
def serve(
    address: Annotated[str, Parameter(name="[HOST:]PORT", help="The host and the port to listen at.")] = _DEFAULT,
    /,
    *,
    app: AppOption = None,
    log_level: Annotated[LogLevel, Parameter(help="The lowest level of logs to show.")] = "info",
) -> int:
    """Serve it until a signal comes; the exit code."""
    from lowkiq_lambda.local.dashboard_port import dashboard_at

    set_up_logs(log_level, "text", sys.stderr)
    ended = Event()
    with dashboard_at(address, app_of(app)):
        for ending in (SIGINT, SIGTERM):
            signal(ending, lambda *_: ended.set())
        ended.wait()
    return DONE
