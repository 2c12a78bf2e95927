"""`lowkiq run`: the daemon of an app."""

import logging
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter
from msgspec import structs

from lowkiq_lambda.base.address import EMBEDDED, is_embedded, parse_address, without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.parts import AppOption, app_spec, command_app, flag, whole_number
from lowkiq_lambda.declare.misspelling import unknown_variables
from lowkiq_lambda.local.logs import LogFormat, LogLevel, set_up_logs
from lowkiq_lambda.local.traces import TRACE_FILE
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.development import refuse_in_deployment
from lowkiq_lambda.settings.loading import load_app
from lowkiq_lambda.settings.project import project_root

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.local.overrides import Overrides

logger = logging.getLogger(__name__)

HELP: Final = """
Run the daemon: a fixed number of threads perform the jobs of an app, until the process is told to stop.

MODULE:APP names the app, or else LOWKIQ_APP, or [tool.lowkiq] of the project's pyproject.toml. Without a Redis URL \
the daemon uses the embedded server: a Valkey on this machine that starts on demand, serves all programs of the \
project, and keeps its data in a folder.
"""
EPILOGUE: Final = """
SETTINGS come from the app's Config, or from the environment, where each is
called LOWKIQ_ and its name. The options above win over both.
  LOWKIQ_REDIS_URL         the server; REDIS_URL serves too. For development
                           embedded: or embedded:FOLDER (.lowkiq at the root
                           of the project), refused where the process is a
                           deployment
  LOWKIQ_THREADS_PER_NODE  the number of drain threads (5)
  LOWKIQ_POLL_INTERVAL     seconds between two polls for work, for pushes
                           without a notification (1)
  LOWKIQ_SHUTDOWN_TIMEOUT  seconds that running handlers have to end (25)
  LOWKIQ_SCHEDULES         whether this process fires schedule entries, true or
                           false; unset: if the app's code declares any
  LOWKIQ_NUMBER_OF_NODES   how many daemons divide the shards among them (1)
  LOWKIQ_NODE_NUMBER       the number of this one, from 0
  LOWKIQ_DASHBOARD_ACCOUNTS
                           a password for each person, name:role:password;
                           without one the dashboard serves this machine
                           alone, with a password that is made up for the run
  LOWKIQ_DASHBOARD_PASSWORD
                           a password that all operators share
  LOWKIQ_DASHBOARD_TRUSTED_PROXIES
                           addresses of the proxies in front of the dashboard,
                           whose headers name the caller

PROCESSES
  Python code runs on one core at a time in each process. --processes 4 makes
  this process a parent of four that drain, each with the threads of
  --threads. It serves the dashboard and replaces a child that dies: the first
  time at once, then after 1, 2, 4 ... 30 seconds. A child that has more than
  --max-memory is replaced, too: another one runs before it is told to stop.
  Signals go to the parent, which passes them on; the exit code is the worst.

SIGNALS
  TERM, INT  Stop: start nothing new, and let running handlers end. Jobs that
             have not ended in time are given back, to run again elsewhere,
             and the process exits. A second signal: at once.
  TSTP       Quiet: start nothing new, finish what runs, live on until TERM.
  TTIN       Log what each thread is doing, and write it to lowkiq_ttin.txt.

EXIT CODES
  0  Every job that was started came to its end.
  1  A job was given back unfinished, or Redis refused something.
  2  The command line, the settings or the app cannot work.
  3  The server cannot be reached, or the embedded server does not start.

EXAMPLES
  The app called app in the module shop.jobs, with 20 threads:
    lowkiq run shop.jobs:app --threads 20
  A look into the embedded server:
    redis-cli -u "$(lowkiq redis)"
  On four cores, with a new process in place of one that has over 1,000 MB:
    lowkiq run shop.jobs:app --processes 4 --max-memory 1000
  The first of two daemons, with logs for machines:
    LOWKIQ_NUMBER_OF_NODES=2 LOWKIQ_NODE_NUMBER=0 \\
      lowkiq run shop.jobs:app --log-format json
"""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line may set; None leaves it to the app or the environment."""

    threads: Annotated[
        int | None,
        Parameter(converter=whole_number(1, 10_000), help="The number of drain threads, in each process."),
    ] = None
    processes: Annotated[
        int | None,
        Parameter(
            converter=whole_number(1, 1_000),
            help="The number of processes that drain, such as one for each core; this one supervises them.",
        ),
    ] = None
    max_memory: Annotated[
        int | None,
        Parameter(
            converter=whole_number(1, 10**9),
            help="The most megabytes of a process of --processes; a larger one is replaced (on Linux).",
        ),
    ] = None
    redis_url: Annotated[
        str | None, Parameter(help="The server, such as redis://localhost:6379/0.", show_default=False)
    ] = None
    data_dir: Annotated[
        Path | None, Parameter(help="The folder for files of the embedded server and traces of threads.")
    ] = None
    scheduler: Annotated[
        Literal["lag", "seq"] | None,
        Parameter(help="Which shard next: the one whose oldest job waits longest, or each in turn."),
    ] = None
    dashboard: Annotated[
        str | None,
        Parameter(
            name="--dashboard", help="[HOST:]PORT to serve the dashboard at, such as 8080 on this machine alone."
        ),
    ] = None
    reload: Annotated[bool, flag("Start anew when a file of the project changes, in development.")] = False
    log_level: Annotated[LogLevel, Parameter(help="The lowest level of logs to show.")] = "info"
    log_format: Annotated[LogFormat, Parameter(help="Lines for people, or a JSON object for each.")] = "text"


command: Final = command_app("run", help_=HELP, epilogue=EPILOGUE, usage="lowkiq run [OPTIONS] [MODULE:APP]")


@command.default
def run(
    app: AppOption = None,
    *,
    require: Annotated[
        str | None,
        Parameter(name=["--require", "-r"], help="The path of the file with the app, such as shop/jobs.py."),
    ] = None,
    options: RunOptions = RunOptions(),
) -> int:
    """Run the daemon; the exit code."""
    if app is not None and require is not None:
        raise ConfigError("-r and --app name an app twice: take one away.")
    if options.max_memory is not None and options.processes is None:
        raise ConfigError("--max-memory needs --processes: a process that has too much memory is replaced by another.")
    set_up_logs(options.log_level, options.log_format, sys.stderr)
    if options.reload:
        return _reload(app, require, options)
    # Before the app is looked for: its variable may be misspelt, too.
    for sentence in _unknown_variables():
        logger.warning(sentence)
    return _run_app(app_spec(require or app, os.environ), options)


def _reload(app: str | None, require: str | None, options: RunOptions) -> int:
    from lowkiq_lambda.local.reloading import Reloader

    refuse_in_deployment("--reload is for development", os.environ)
    words = ["--require", require] if require else [app] if app else []
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name != "reload" and value != field.default:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return Reloader([sys.executable, "-m", "lowkiq_lambda", "run", *words], project_root()).run()


def _run_app(spec: str, options: RunOptions) -> int:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.local.daemon import Daemon
    from lowkiq_lambda.local.dashboard_port import dashboard_at
    from lowkiq_lambda.local.process_runner import ProcessRunner
    from lowkiq_lambda.local.serving import server_for

    app = load_app(spec, Lowkiq)
    _overrides(options).apply(app)
    url = app.config.redis_url
    # An app that cannot work is refused before the log announces a start.
    if not app.workers:
        raise ConfigError(f"{spec} declares no worker: import the modules that declare them.")
    if url is not None and not is_embedded(url):
        parse_address(url)
    dashboard = dashboard_at(options.dashboard, app)
    folder = server_for(app, options.data_dir, Path(tempfile.gettempdir()))
    config = app.config
    with dashboard:
        if url is None and config.redis is None:
            logger.warning("no Redis is named; other programs use this server after: export %s", _variable_for(folder))
        logger.info(
            "daemon",
            extra={
                "app": spec,
                "queues": [worker.queue_name for worker in app.workers],
                "threads": config.threads_per_node,
                **({} if options.processes is None else {"processes": options.processes}),
                "redis": without_password(app.core.connections.url),
                "pid": os.getpid(),
            },
        )
        if options.processes is not None:
            return _run_processes(spec, app, options, folder)
        return ProcessRunner(Daemon(app), config.shutdown_timeout, folder / TRACE_FILE).run()


def _run_processes(spec: str, app: "Lowkiq", options: RunOptions, folder: Path) -> int:
    from lowkiq_lambda.local.processes.messages import Order
    from lowkiq_lambda.local.processes.parent import run_parent

    # Each child is a user of its own of the embedded server, so that it stays even where the parent is killed.
    url = f"{EMBEDDED}{folder}" if is_embedded(app.config.redis_url) else options.redis_url
    order = Order(
        app=spec,
        number=0,
        processes=options.processes or 1,
        folder=str(folder),
        overrides=structs.replace(_overrides(options), redis_url=url),
        log_level=options.log_level,
        log_format=options.log_format,
    )
    return run_parent(app, order, options.max_memory)


def _unknown_variables() -> list[str]:
    if not unknown_variables(os.environ, Config, Settings):
        return []
    from lowkiq_lambda.dashboard.security.settings import DashboardSettings

    return unknown_variables(os.environ, Config, Settings, DashboardSettings)


def _variable_for(folder: Path) -> str:
    return f"LOWKIQ_REDIS_URL={shlex.quote(f'{EMBEDDED}{folder}')}"


def _overrides(options: RunOptions) -> "Overrides":
    from lowkiq_lambda.local.overrides import Overrides

    return Overrides(threads=options.threads, redis_url=options.redis_url, scheduler=options.scheduler)
