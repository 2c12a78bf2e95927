"""`lowkiq run`: the daemon of an app, or the demo."""

import logging
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from secrets import randbits
from signal import SIGINT, SIGTERM, signal
from typing import Annotated, Final, Literal

from cyclopts import Group, Parameter
from msgspec import structs
from rich.console import Console

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.cli.parts import command_app, find_app_spec, number, whole_number
from lowkiq_lambda.cli.run_help import EPILOGUE, HELP
from lowkiq_lambda.config import EMBEDDED, Config, is_embedded
from lowkiq_lambda.error_text import without_password
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.loading import load_app
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.dashboard_port import dashboard_at
from lowkiq_lambda.local.demo.faults import FAILURES, INTERRUPTIONS, Faults
from lowkiq_lambda.local.demo.run import Demo
from lowkiq_lambda.local.demo.source import DEFAULT_LIMIT, choose_history
from lowkiq_lambda.local.logs import LogFormat, LogLevel, set_up_logs
from lowkiq_lambda.local.overrides import Overrides
from lowkiq_lambda.local.process_runner import ProcessRunner
from lowkiq_lambda.local.serving import server_for, server_for_demo
from lowkiq_lambda.local.traces import TRACE_FILE
from lowkiq_lambda.misspelling import unknown_variables
from lowkiq_lambda.store.server.address import parse_address

logger = logging.getLogger(__name__)

_SHARE: Final = number(0, 1, is_most_allowed=False)
_DEMO: Final = Group("Options of the demo")


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
            help="Drain in so many processes, such as one for each core; this one supervises them.",
        ),
    ] = None
    max_memory: Annotated[
        int | None,
        Parameter(
            converter=whole_number(1, 10**9), help="Megabytes; one of --processes that has more is replaced (on Linux)."
        ),
    ] = None
    redis_url: Annotated[
        str | None, Parameter(help="The server, such as redis://localhost:6379/0.", show_default=False)
    ] = None
    data_dir: Annotated[
        Path | None, Parameter(help="The folder for files of the embedded server, the demo and traces of threads.")
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
        LogLevel | None, Parameter(help="The lowest level of logs to show; info, or warning for the demo.")
    ] = None
    log_format: Annotated[LogFormat, Parameter(help="Lines for people, or a JSON object for each.")] = "text"


@Parameter(name="*", group=_DEMO)
@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What the command line may set of the demo; None where it does not."""

    repository: Annotated[Path | None, Parameter(help="A git checkout to replay; else the one around this folder.")] = (
        None
    )
    limit: Annotated[
        int | None,
        Parameter(
            converter=whole_number(0, 10**9),
            help=f"At most so many changes, the latest; 0 for all. [default: {DEFAULT_LIMIT}]",
        ),
    ] = None
    failures: Annotated[
        float | None,
        Parameter(converter=_SHARE, help=f"The share of batches that are made to fail. [default: {FAILURES}]"),
    ] = None
    interruptions: Annotated[
        float | None,
        Parameter(
            converter=_SHARE, help=f"The share of batches whose thread is made to end. [default: {INTERRUPTIONS}]"
        ),
    ] = None

    def refuse_with(self, spec: str) -> None:
        """Raise ConfigError where one is set though an app runs."""
        for field in fields(self):
            if getattr(self, field.name) is not None:
                raise ConfigError(f"--{field.name} is an option of the demo, and {spec} is an app: leave one out.")


command: Final = command_app("run", help_=HELP, epilogue=EPILOGUE, usage="lowkiq run [OPTIONS] [MODULE:APP]")


@command.default
def run(
    app: Annotated[
        str | None,
        Parameter(name="MODULE:APP", help="The app; else that of LOWKIQ_APP or of the project, else the demo."),
    ] = None,
    /,
    *,
    options: RunOptions = RunOptions(),
    demo: DemoOptions = DemoOptions(),
) -> int:
    """Run the daemon, or the demo; the exit code."""
    environment = Config.from_env(os.environ)
    spec = find_app_spec(app, os.environ)
    _check_together(spec, options)
    set_up_logs(options.log_level or ("info" if spec else "warning"), options.log_format, sys.stderr)
    for sentence in _unknown_variables():
        logger.warning(sentence)
    if spec is None:
        return _run_demo(environment, options, demo)
    demo.refuse_with(spec)
    return _run_app(spec, options)


def _run_app(spec: str, options: RunOptions) -> int:
    app = load_app(spec)
    _overrides(options).apply(app)
    named = app.config.redis_url
    # What cannot work is refused before the log tells of a start.
    if not app.workers:
        raise ConfigError(f"{spec} declares no worker: import the modules that declare them.")
    if named is not None and not is_embedded(named):
        parse_address(named)
    dashboard = dashboard_at(options.dashboard, app)
    folder = server_for(app, options.data_dir, Path(tempfile.gettempdir()))
    config = app.config
    with dashboard:
        if named is None:
            logger.warning("no Redis is named; other programs use this server after: export %s", _variable_for(folder))
        logger.info(
            "daemon",
            extra={
                "app": spec,
                "queues": [worker.queue_name for worker in app.workers],
                "threads": config.threads_per_node,
                **({} if options.processes is None else {"processes": options.processes}),
                "redis": without_password(app.redis_url),
                "pid": os.getpid(),
            },
        )
        if options.processes is not None:
            return _run_processes(spec, app, options, folder)
        return ProcessRunner(Daemon(app), config.shutdown_timeout, folder / TRACE_FILE).run()


def _run_processes(spec: str, app: Lowkiq, options: RunOptions, folder: Path) -> int:
    from lowkiq_lambda.local.processes.messages import Order  # noqa: PLC0415 - only where it is asked for
    from lowkiq_lambda.local.processes.parent import run_parent  # noqa: PLC0415 - as above

    # Each child is a user of its own of the embedded server, so that it stays even where the parent is killed.
    url = f"{EMBEDDED}{folder}" if is_embedded(app.config.redis_url) else options.redis_url
    order = Order(
        app=spec,
        number=0,
        processes=options.processes or 1,
        folder=str(folder),
        overrides=structs.replace(_overrides(options), redis_url=url),
        log_level=options.log_level or "info",
        log_format=options.log_format,
    )
    return run_parent(app, order, options.max_memory)


def _run_demo(environment: Config, options: RunOptions, chosen: DemoOptions) -> int:
    app = Lowkiq(environment)
    _overrides(options).apply(app)
    # It drains all that it pushes, whatever part of an app's shards this machine is to have.
    app.configure(number_of_nodes=1, node_number=0)
    limit = DEFAULT_LIMIT if chosen.limit is None else chosen.limit
    history = choose_history(chosen.repository, limit or None)
    dashboard = dashboard_at(options.dashboard, app)
    folder = server_for_demo(app, options.data_dir)
    failures = FAILURES if chosen.failures is None else chosen.failures
    interruptions = INTERRUPTIONS if chosen.interruptions is None else chosen.interruptions
    demo = Demo(app, Daemon, folder, Console(), Faults(failures, interruptions, seed=randbits(32)))
    # Both end it in good order, at a place of its own choosing: an exception may come when a lock is held.
    for ending in (SIGINT, SIGTERM):
        signal(ending, lambda *_: demo.stop.set())
    with dashboard:
        return demo.run(history)


def _unknown_variables() -> list[str]:
    if not unknown_variables(os.environ, Config, Settings):
        return []
    from lowkiq_lambda.dashboard.security.settings import DashboardSettings  # noqa: PLC0415 - imported lazily: it is slow

    return unknown_variables(os.environ, Config, Settings, DashboardSettings)


def _variable_for(folder: Path) -> str:
    return f"LOWKIQ_REDIS_URL={shlex.quote(f'{EMBEDDED}{folder}')}"


def _check_together(spec: str | None, options: RunOptions) -> None:
    if options.max_memory is not None and options.processes is None:
        raise ConfigError("--max-memory needs --processes: a process that has too much memory is replaced by another.")
    if options.processes is not None and not spec:
        raise ConfigError("--processes needs an app, MODULE:APP: the demo runs in one process.")


def _overrides(options: RunOptions) -> Overrides:
    return Overrides(threads=options.threads, redis_url=options.redis_url, scheduler=options.scheduler)
