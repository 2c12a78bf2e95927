"""`lowkiq fuzz`: tries to refute that a handler does no harm when it runs again."""

import os
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from cyclopts import Parameter

from lowkiq_lambda.base.errors import BackendUnavailable, ConfigError, EmbeddedServerError
from lowkiq_lambda.cli.codes import DIFFERENT, DONE, MISUSED
from lowkiq_lambda.cli.output import progress, remark, say, write_json
from lowkiq_lambda.cli.parts import AppOption, app_spec, command_app, find_app_spec, flag, number, whole_number
from lowkiq_lambda.cli.queues import worker_of
from lowkiq_lambda.cli.terminating import heeding_term
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.declare.worker import worker_of as declared
from lowkiq_lambda.settings.loading import load_app, load_value
from lowkiq_lambda.testing.fuzz.report import FuzzReport, terminal_width
from lowkiq_lambda.testing.fuzz.written_test import OF_DJANGO, written_test

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.declare.pushable import AnyWorker
    from lowkiq_lambda.testing.fuzz.options import FuzzOptions

_HELP: Final = """
Try to refute that a handler does no harm when its process dies, stands still or gets a job again.

The real engine performs scenarios on a server that is started for this, by a clock that the command moves. In each, a \
fault happens before a line of the handler, versions come late, or deliveries are merged. Each scenario has to end as \
if its payloads had been performed alone, in order and without a fault. WORKER is MODULE:WORKER, or the name of a \
queue of the app.
"""
_EPILOGUE: Final = """
OPTIONS OF A WORKER
  What has to be equal in the end, and how it is put back, stands in
  pyproject.toml, or is returned by a function fuzz() of the worker's class:
    [tool.lowkiq.fuzz.SyncOrder]
    state = "tests.fuzzing:orders"
    reset = "tests.fuzzing:truncate_orders"
    payloads = "tests.fuzzing:PAYLOADS"
  Without a state, the pushes of the handler are compared. docs/fuzzing.md has
  the other options.

ENVIRONMENT
  LOWKIQ_TEST_REDIS_URL  a server with an empty database, in place of one that
                         is started.

EXIT CODES
  0  No scenario ends differently. That is no proof.
  1  A scenario ends differently.
  2  The command line, the settings or the app cannot work, the handler fails
     without any fault, or the fuzz itself fails.
  3  No server can be started or reached.

EXAMPLES
  A minute of a handler:
    lowkiq fuzz shop:SyncOrder
  A test of what was found:
    lowkiq fuzz shop:SyncOrder --write-test tests/test_found.py
"""
_MOST_SECONDS: Final = 86_400
_MOST_SCENARIOS: Final = 10_000_000
_MOST_SEED: Final = 2**53
_WORKER: Final = re.compile(r"[\w.]+:[\w.]+")
_SETTINGS_OF_DJANGO: Final = "DJANGO_SETTINGS_MODULE"
_PARTS: Final = 1_000
"""Of the bar of a terminal."""

command: Final = command_app("fuzz", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq fuzz [OPTIONS] WORKER")


@command.default
def fuzz_worker(  # noqa: PLR0913 - the options of the command
    worker: Annotated[str, Parameter(name="WORKER", help="MODULE:WORKER, or a queue of the app.")],
    /,
    *,
    seconds: Annotated[
        float, Parameter(help="Seconds after which no scenario begins.", converter=number(0.1, _MOST_SECONDS))
    ] = 60.0,
    scenarios: Annotated[
        int | None,
        Parameter(help="So many scenarios, however long they take.", converter=whole_number(1, _MOST_SCENARIOS)),
    ] = None,
    seed: Annotated[
        int, Parameter(help="The seed of the random scenarios.", converter=whole_number(0, _MOST_SEED))
    ] = 0,
    replay: Annotated[str | None, Parameter(help="This plan alone, as a finding shows it.")] = None,
    fork: Annotated[bool, flag("Perform each drain in a child process, which is really killed.")] = False,
    write_test: Annotated[Path | None, Parameter(help="Write a test of each finding to this new file.")] = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write the report as JSON.")] = False,
) -> int:
    """Fuzz; the exit code."""
    from lowkiq_lambda.testing.fuzz.options import FuzzOptions

    loaded, subject, spec = _subject(worker, app)
    if write_test is not None and write_test.exists():
        raise ConfigError(f"{write_test} exists: name a new file.")
    options = FuzzOptions(seconds=seconds, scenarios=scenarios, seed=seed, plan=replay)
    if fork:
        options["fork"] = True
    try:
        report = _report(loaded, subject, options, total=None if replay is not None else _PARTS)
    except (BackendUnavailable, ConfigError, EmbeddedServerError):
        raise
    except Exception:  # noqa: BLE001 - it is reported
        # Such as one of `state` or `reset`. It must not look as if a scenario had ended differently.
        traceback.print_exc()
        remark(f"error: the fuzz of {subject.__name__} failed itself, as shown above.")
        return MISUSED
    if json:
        write_json(report.as_json())
    else:
        say(report.text(terminal_width()))
    if write_test is not None and report.findings:
        write_test.parent.mkdir(parents=True, exist_ok=True)
        write_test.write_text(written_test(subject, report, spec), "utf-8")
        remark(f"wrote {write_test}")
    return DIFFERENT if report.findings else DONE


def _report(app: "Lowkiq", worker: type[Worker[Any]], options: "FuzzOptions", *, total: int | None) -> FuzzReport:
    from lowkiq_lambda.testing.fuzz.run import fuzz
    from lowkiq_lambda.testing.kit import app_under_test
    from lowkiq_lambda.testing.server import URL_VARIABLE, open_server

    with (
        # A handler may hang, and the server would outlive the command.
        heeding_term(),
        open_server(url=os.environ.get(URL_VARIABLE)) as server,
        app_under_test(app, server) as kit,
        progress(f"fuzz {worker.__name__}", total) as show,
    ):
        most = options["scenarios"]

        def update(scenarios: int, part: float) -> None:
            show(int(_PARTS * (part if most is None else scenarios / most)))

        return fuzz(kit.app, kit.clock, worker, options, update)


def _subject(word: str, app: str | None) -> "tuple[Lowkiq, type[Worker[Any]], str | None]":
    """The app, its worker, and MODULE:APP if that was loaded.

    Raises ConfigError, AppNotFound, DeclarationError.
    """
    from lowkiq_lambda.app import Lowkiq

    if ":" not in word:
        place = app_spec(app, os.environ)
        loaded = load_app(place, Lowkiq)
        return loaded, worker_of(loaded, word), place
    if not _WORKER.fullmatch(word):
        raise ConfigError(f"{word!r} names no worker: expected MODULE:WORKER, such as shop:SyncOrder.")
    spec = find_app_spec(app, os.environ) or (OF_DJANGO if os.environ.get(_SETTINGS_OF_DJANGO) else None)
    if spec is not None:
        # The modules of a project of Django can be imported once its app has set Django up.
        load_app(spec, Lowkiq)
    subject = declared(cast("AnyWorker", load_value(word)))
    if subject.app is None:
        raise ConfigError(f"{word} is not bound to an app: decorate it with @app.worker.")
    return cast("Lowkiq", subject.app), subject, spec
