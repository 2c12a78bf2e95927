"""`lowkiq run`: the daemon of an app, or the demo."""

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

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number
from rich.console import Console

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.cli import embedded
from lowkiq_lambda.cli.parts import command_app
from lowkiq_lambda.cli.run_help import EPILOGUE, HELP
from lowkiq_lambda.config import EMBEDDED, Config
from lowkiq_lambda.error_text import without_password
from lowkiq_lambda.loading import load_app
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.dashboard_port import dashboard_at
from lowkiq_lambda.local.demo.faults import FAILURES, INTERRUPTIONS, Faults
from lowkiq_lambda.local.demo.run import Demo
from lowkiq_lambda.local.demo.source import DEFAULT_LIMIT, choose_history
from lowkiq_lambda.local.logs import LogFormat, LogLevel, set_up_logs
from lowkiq_lambda.local.process_runner import ProcessRunner
from lowkiq_lambda.local.schedulers import LagScheduler, SeqScheduler
from lowkiq_lambda.local.serving import server_for, server_for_demo

logger = logging.getLogger(__name__)

_SCHEDULERS: Final = {"lag": LagScheduler, "seq": SeqScheduler}
_SHARE: Final = Number(gte=0, lt=1)
_DEMO: Final = Group("Options of the demo")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
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


def run(
    app: Annotated[str | None, Parameter(name="MODULE:APP", help="The app; else LOWKIQ_APP, else the demo.")] = None,
    /,
    *,
    options: RunOptions = RunOptions(),
) -> int:
    """Run the daemon, or the demo; the exit code."""
    environment = Config.from_env(os.environ)
    spec = app or environment.app
    set_up_logs(options.log_level or ("info" if spec else "warning"), options.log_format, sys.stderr)
    return _run_app(spec, options) if spec else _run_demo(environment, options)


def build(program: str) -> App:
    """The command line of a program that runs the daemon, with the commands for the embedded server."""
    app = _app(program, program)
    for subcommand in (embedded.redis, embedded.reset):
        app.command(subcommand)
    return app


def _app(name: str, program: str) -> App:
    app = command_app(name, help_=HELP, epilogue=EPILOGUE, usage=f"{program} [OPTIONS] [MODULE:APP]")
    app.default(run)
    return app


def _run_app(spec: str, options: RunOptions) -> int:
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


def _run_demo(environment: Config, options: RunOptions) -> int:
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


def _configure(app: Lowkiq, options: RunOptions) -> None:
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


command: Final = _app("run", "lowkiq run")
