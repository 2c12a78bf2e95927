"""The command line of the daemon: `python -m lowkiq_lambda.local`."""

import logging
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from secrets import randbits
from signal import SIGINT, SIGTERM, signal
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Group, Parameter
from cyclopts.validators import Number
from rich.console import Console

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.config import EMBEDDED, Config, without_password
from lowkiq_lambda.errors import ConfigError, DeclarationError, LowkiqError
from lowkiq_lambda.loading import AppNotFound, load_app
from lowkiq_lambda.local.conduct import ProcessRunner
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.dashboard_port import dashboard_at
from lowkiq_lambda.local.demo.faults import FAILURES, INTERRUPTIONS, Faults
from lowkiq_lambda.local.demo.run import Demo
from lowkiq_lambda.local.demo.source import DEFAULT_LIMIT, choose_history
from lowkiq_lambda.local.embedded.commands import redis, reset
from lowkiq_lambda.local.logs import LogFormat, LogLevel, set_up_logs
from lowkiq_lambda.local.schedulers import LagScheduler, SeqScheduler
from lowkiq_lambda.local.serving import server_for, server_for_demo

logger = logging.getLogger(__name__)

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130
"""Exit codes: what was asked for did not work; cannot work; was broken off before anything ran."""

_SCHEDULERS: Final = {"lag": LagScheduler, "seq": SeqScheduler}
_SHARE: Final = Number(gte=0, lt=1)
_OPTIONS: Final = Group("Options")
_DEMO: Final = Group("Options of the demo")
_COMMANDS: Final = Group("Commands for the embedded server")

_HELP: Final = """
Drain the queues of an app: a fixed number of threads perform its jobs, until the process is told to stop.

Without MODULE:APP, and without LOWKIQ_APP, the bundled demo runs: it replays the history of a git repository \
into a table and compares the two. Without a Redis URL the embedded server is used: a Valkey on this machine that is \
started on demand, shared by all programs of the project, and keeps its data in a folder.
"""
_EPILOGUE: Final = """
SETTINGS come from the app's Config, or from the environment, where each is
called LOWKIQ_ and its name. The options above win over both.
  LOWKIQ_REDIS_URL         the server; REDIS_URL serves too. For development
                           embedded: or embedded:FOLDER, refused where the
                           process is a deployment
  LOWKIQ_THREADS_PER_NODE  how many drain threads (5)
  LOWKIQ_POLL_INTERVAL     seconds after which work is found that no bell
                           was rung for (1)
  LOWKIQ_SHUTDOWN_TIMEOUT  seconds that running handlers have to end (25)
  LOWKIQ_NUMBER_OF_NODES   how many daemons divide the shards among them (1)
  LOWKIQ_NODE_NUMBER       which of them this is, from 0
  LOWKIQ_DATA_DIR          as --data-dir, for the embedded server; .lowkiq at
                           the root of the project without one
  LOWKIQ_DASHBOARD_PASSWORD
                           of those who may act on the dashboard; without one
                           it serves this machine alone, with a password that
                           is made up for the run
  LOWKIQ_DASHBOARD_TRUSTED_PROXIES
                           addresses of the proxies in front of the dashboard,
                           which tell from where a request comes

SIGNALS
  TERM, INT  Stop: start nothing new, and let running handlers end. What has
             not ended in time is given back, to run again elsewhere, and the
             process exits. A second signal: at once.
  TSTP       Quiet: start nothing new, finish what runs, live on until TERM.
  TTIN       Log what each thread is doing, and write it to lowkiq_ttin.txt.

EXIT CODES
  0    All that ran came to its end.
  1    Something was given back unfinished or did not work, or the demo's table
       differs from git.
  2    The command line, the settings or the app cannot work.
  130  The demo was broken off.

EXAMPLES
  The demo, on a server of its own:
    python -m lowkiq_lambda.local
  The app called app in the module shop.jobs, with 20 threads:
    python -m lowkiq_lambda.local shop.jobs:app --threads 20
  A look into the embedded server:
    redis-cli -u "$(python -m lowkiq_lambda.local redis)"
  The first of two daemons, with logs for machines:
    LOWKIQ_NUMBER_OF_NODES=2 LOWKIQ_NODE_NUMBER=0 \\
      python -m lowkiq_lambda.local shop.jobs:app --log-format json
"""

cli = cyclopts.App(
    name="python -m lowkiq_lambda.local",
    help=_HELP,
    help_epilogue=_EPILOGUE,
    help_format="plaintext",
    version_flags=[],
    group_commands=_OPTIONS,
    group_parameters=_OPTIONS,
    usage="Usage: python -m lowkiq_lambda.local [OPTIONS] [MODULE:APP]",
)
for command in (redis, reset):
    cli.command(command, group=_COMMANDS, help_epilogue="", usage=None)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line may set; None leaves it to the app or the environment."""

    threads: Annotated[int | None, Parameter(help="How many drain threads.")] = None
    redis_url: Annotated[
        str | None, Parameter(help="The server, such as redis://localhost:6379/0.", show_default=False)
    ] = None
    data_dir: Annotated[
        Path | None, Parameter(help="Where the embedded server, the demo and traces of threads keep their files.")
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
    log_level: Annotated[
        LogLevel | None, Parameter(help="The least important logs that are shown; info, warning for the demo.")
    ] = None
    log_format: Annotated[LogFormat, Parameter(help="Lines for people, or a JSON object for each.")] = "text"
    repository: Annotated[
        Path | None, Parameter(group=_DEMO, help="A git checkout to replay; else the one around this folder.")
    ] = None
    limit: Annotated[
        int, Parameter(group=_DEMO, validator=Number(gte=0), help="At most so many changes, the latest; 0 for all.")
    ] = DEFAULT_LIMIT
    failures: Annotated[
        float, Parameter(group=_DEMO, validator=_SHARE, help="The share of batches that are made to fail.")
    ] = FAILURES
    interruptions: Annotated[
        float, Parameter(group=_DEMO, validator=_SHARE, help="The share of batches whose thread is made to end.")
    ] = INTERRUPTIONS


@cli.default
def run(
    app: Annotated[str | None, Parameter(name="MODULE:APP", help="The app; else LOWKIQ_APP, else the demo.")] = None,
    /,
    *,
    options: Options = Options(),
) -> int:
    """Run the daemon, or the demo; the exit code."""
    try:
        environment = Config.from_env(os.environ)
        spec = app or environment.app
        set_up_logs(options.log_level or ("info" if spec else "warning"), options.log_format, sys.stderr)
        return _run_app(spec, options) if spec else _run_demo(environment, options)
    except KeyboardInterrupt:
        return INTERRUPTED


def main() -> None:
    """Run the command line and exit."""
    try:
        cli()
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            logger.error("the app cannot be imported", exc_info=error.__cause__)  # noqa: TRY400 - the user's own error
        sys.stderr.write(f"error: {error}\n")
        sys.exit(MISUSED if isinstance(error, AppNotFound | ConfigError | DeclarationError) else FAILED)


def _run_app(spec: str, options: Options) -> int:
    app = load_app(spec)
    _configure(app, options)
    named = app.config.redis_url
    folder = server_for(app, options.data_dir, Path(tempfile.gettempdir()))
    if named is None:
        logger.warning("no Redis is named; other programs use this server after: export %s", _variable_for(folder))
    config = app.config
    logger.info(
        "daemon",
        extra={
            "app": spec,
            "queues": [worker.queue_name for worker in app.workers],
            "threads": config.threads_per_node,
            "redis": without_password(app.redis_url),
            "pid": os.getpid(),
        },
    )
    with dashboard_at(options.dashboard, app):
        return ProcessRunner(Daemon(app), config.shutdown_timeout, folder).run()


def _run_demo(environment: Config, options: Options) -> int:
    app = Lowkiq(environment)
    _configure(app, options)
    # It drains all that it pushes, whatever part of an app's shards this machine is to have.
    app.configure(number_of_nodes=1, node_number=0)
    history = choose_history(options.repository, options.limit or None)
    folder = server_for_demo(app, options.data_dir)
    faults = Faults(options.failures, options.interruptions, seed=randbits(32))
    demo = Demo(app, Daemon, folder, Console(), faults)
    # Both end it in good order, at a place of its own choosing: an exception may come when a lock is held.
    for number in (SIGINT, SIGTERM):
        signal(number, lambda *_: demo.stop.set())
    with dashboard_at(options.dashboard, app):
        return demo.run(history)


def _variable_for(folder: Path) -> str:
    return f"LOWKIQ_REDIS_URL={shlex.quote(f'{EMBEDDED}{folder}')}"


def _configure(app: Lowkiq, options: Options) -> None:
    """Set what the command line says, and nothing else."""
    changes: dict[str, object] = {}
    if options.threads is not None:
        changes["threads_per_node"] = options.threads
    if options.redis_url is not None:
        changes["redis_url"] = options.redis_url
    if options.scheduler is not None:
        changes["build_scheduler"] = _SCHEDULERS[options.scheduler]
    if changes:
        app.configure(**changes)


if __name__ == "__main__":
    main()
