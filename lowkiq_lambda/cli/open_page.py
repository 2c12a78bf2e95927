"""`lowkiq open`: the dashboard's page of a queue or of a job."""

import os
import sys
import webbrowser
from typing import Annotated, Final
from urllib.parse import urlencode

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.contexts import DASHBOARD_URL
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import AppOption, command_app, find_app_spec
from lowkiq_lambda.cli.queues import QueueName, worker_named
from lowkiq_lambda.settings.loading import load_app

_HELP: Final = """
Print the address of the dashboard's page of QUEUE, or of the job ID in it; in a terminal, open it, too.
"""
_EPILOGUE: Final = """
SETTINGS, from the environment
  LOWKIQ_DASHBOARD_URL  where the dashboard is; a context has it as
                        dashboard_url

EXIT CODES
  0  The address is printed.
  2  The command line, the settings or the app cannot work.

EXAMPLES
  A job of the dashboard on this machine:
    lowkiq open SyncOrder 17 --dashboard http://127.0.0.1:8080
  In the context prod of pyproject.toml:
    lowkiq open SyncOrder --context prod
"""
command: Final = command_app("open", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq open [OPTIONS] QUEUE [ID]")


@command.default
def open_page(
    queue: QueueName,
    id_: Annotated[str | None, Parameter(name="ID", help="The id of a job.")] = None,
    /,
    *,
    dashboard: Annotated[str | None, Parameter(help="The URL of the dashboard.")] = None,
    app: AppOption = None,
) -> int:
    """Print and open it; the exit code."""
    base = dashboard or os.environ.get(DASHBOARD_URL, "").strip()
    if not base.startswith(("http://", "https://")):
        raise ConfigError(
            f"Nothing says where the dashboard is: give --dashboard, or {DASHBOARD_URL}, as an http(s) URL."
        )
    fields = {"queue": _queue_name(queue, app)} | ({} if id_ is None else {"id": id_})
    url = f"{base.rstrip('/')}/{'queue' if id_ is None else 'job'}?{urlencode(fields, errors='replace')}"
    say(url)
    if sys.stdout.isatty():
        webbrowser.open(url)
    return DONE


def _queue_name(word: str, spec: str | None) -> str:
    """The queue's name, if the word is that of its worker. Redis is not asked."""
    from lowkiq_lambda.app import Lowkiq

    spec = find_app_spec(spec, os.environ)
    worker = worker_named(load_app(spec, Lowkiq), word) if spec else None
    return worker.queue_name if worker else word
