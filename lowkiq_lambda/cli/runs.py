"""`lowkiq runs` and `lowkiq tail`: what a queue has run, and what queues run now."""

from collections.abc import Iterator
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import remark, say, write_json
from lowkiq_lambda.cli.parts import After, AppOption, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import NamedQueue, OneQueue, QueueName, app_of, queue_of, worker_of
from lowkiq_lambda.operate.inspect.paging import LARGEST_PAGE
from lowkiq_lambda.operate.presentation.formatting import duration, utc, visible
from lowkiq_lambda.operate.presentation.moments import moment_of, seconds_of
from lowkiq_lambda.operate.presentation.runs import RunsView, runs_view
from lowkiq_lambda.views.runs import KeptRun

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.declare.worker import Worker

_HELP: Final = """
Print what QUEUE has run: which ids, when, for how long, and with which outcome; the newest first.

The worker has to keep runs (`keep_runs`). --at selects what ran at a moment, --since and --until between two. \
Moments are "03:12 yesterday", "03:12", "2h ago", 2026-10-25T02:30 (UTC), the same with +02:00, or Unix seconds; \
lengths of time are 10s, 5m, 2h or 1d.
"""
_OUTCOMES: Final = """
OUTCOMES
  done       it ended well
  retried    it failed, and is tried again
  dead       it failed for the last time; blocked: and its queue blocks then
  rejected   it ended with a business failure
  discarded  a rule of the worker dropped a payload of it
  expired    its payloads were over, so it was not run
  suspected  it failed in a batch whose error named no id
  later      it asked to go on later, or made way at a cursor
  returned   it was stopped, or exited
  recovered  its process died
"""
_EPILOGUE: Final = f"""{_OUTCOMES}
EXIT CODES
  0  The runs are printed, be they none.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  What ran at 03:12 last night, give or take five minutes:
    lowkiq runs SyncOrder --at "03:12 yesterday" --around 5m
  What has failed since the release r418 began:
    lowkiq runs SyncOrder --since-release r418 --outcome retried
  The slow ones of a day, for a program:
    lowkiq runs SyncOrder --since yesterday --took-over 10s --json
"""
_TAIL_HELP: Final = """
Print the runs of QUEUE, or of all queues of the app, as they end, until Ctrl-C. The time is that at which a run began.

The workers have to keep runs (`keep_runs = 10_000` in their classes): others are left out, and named. While Redis is \
away the command waits, and it goes on where it was.
"""
_TAIL_EPILOGUE: Final = f"""{_OUTCOMES}
EXIT CODES
  0  Ctrl-C has ended it.
  2  The command line, the settings or the app cannot work, or no queue keeps
     runs.
  3  Redis could not be reached when it began.

EXAMPLES
  All that fails, of all queues:
    lowkiq tail --outcome retried --outcome dead
  The slow runs of a queue, for a program:
    lowkiq tail SyncOrder --took-over 10s --json
"""
_EVERY: Final = 1.0
"""Seconds between two looks of a tail."""
_NAMED: Final = 5
_AROUND: Final = "1m"
_WIDEST: Final = 9
"""Characters of the longest outcome."""
_WIDEST_TIME: Final = 7
"""Characters of nearly every length of time."""

IdOption: TypeAlias = Annotated[str | None, Parameter(name="--id", help="Runs of this id alone.")]
Outcomes: TypeAlias = Annotated[
    list[str] | None, Parameter(name="--outcome", help="Runs with this outcome alone; may be given again.", negative="")
]
WithFingerprint: TypeAlias = Annotated[
    str | None, Parameter(name="--fingerprint", help="Runs with an error of this fingerprint alone.")
]
OfRelease: TypeAlias = Annotated[str | None, Parameter(name="--release", help="Runs of this release alone.")]
TookOver: TypeAlias = Annotated[
    str | None, Parameter(name="--took-over", help="A length of time: runs that took longer.")
]

command: Final = command_app("runs", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq runs [OPTIONS] QUEUE")
tail: Final = command_app("tail", help_=_TAIL_HELP, epilogue=_TAIL_EPILOGUE, usage="lowkiq tail [OPTIONS] [QUEUE]")


@command.default
def runs(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *,
    at: Annotated[str | None, Parameter(help="A moment: what ran then.")] = None,
    around: Annotated[str | None, Parameter(help=f"How long before and after --at; {_AROUND} without.")] = None,
    since: Annotated[str | None, Parameter(help="A moment: what ran then or later.")] = None,
    until: Annotated[str | None, Parameter(help="A moment: what ran then or earlier.")] = None,
    since_release: Annotated[str | None, Parameter(help="A release: what ran since a process first had it.")] = None,
    id_: IdOption = None,
    outcome: Outcomes = None,
    fingerprint: WithFingerprint = None,
    release: OfRelease = None,
    took_over: TookOver = None,
    limit: Annotated[int, Parameter(help="The largest number of runs.", converter=whole_number(1, LARGEST_PAGE))] = 100,
    after: After = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/runs does; times are Unix seconds.")] = False,
) -> int:
    """Print them; the exit code."""
    named_queue = queue_of(app_of(app), queue)
    now = SystemClock.time()
    try:
        since_at, until_at = _window(named_queue, (at, around), (since, until), since_release, now)
        page = named_queue.operate.runs(
            since=since_at,
            until=until_at,
            id=id_,
            outcome=outcome,
            fingerprint=fingerprint,
            release=release,
            took_over=None if took_over is None else seconds_of(took_over),
            limit=limit,
            after=after,
        )
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from None
    view = runs_view(page)
    if json:
        write_json(view)
    else:
        say(*map(visible, _lines(view)))
        for line in _remarks(named_queue, view):
            remark(line)
    return DONE


@tail.default
def follow(  # noqa: PLR0913 - the options of a command line
    queue: OneQueue = None,
    /,
    *,
    id_: IdOption = None,
    outcome: Outcomes = None,
    fingerprint: WithFingerprint = None,
    release: OfRelease = None,
    took_over: TookOver = None,
    app: AppOption = None,
    json: Annotated[
        bool, flag("Write an object in each line: the run as GET /api/v1/runs has it, and its queue.")
    ] = False,
) -> int:
    """Print them as they come; the exit code."""
    from lowkiq_lambda.operate.inspect.run_filter import RunFilter
    from lowkiq_lambda.operate.inspect.runs import NewRuns
    from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
    from lowkiq_lambda.store.shard.reader import ShardReader

    loaded = app_of(app)
    names = _keepers(loaded, None if queue is None else worker_of(loaded, queue))
    try:
        longer = None if took_over is None else seconds_of(took_over)
        terms = RunFilter.of(id=id_, outcome=outcome, fingerprint=fingerprint, release=release, took_over=longer)
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from None
    reader = ShardReader(loaded.core.backend, loaded.config.redis_retry_for)
    news = NewRuns(reader, StoredErrors(loaded.config.load_error), terms)
    pause, unreadable, away, has_begun = Event(), 0, "", False
    try:
        while True:
            try:
                queues, _ = loaded.core.queues.all_current()
                for name, run in news.look(queues[each].shards for each in names if each in queues):
                    of_several = [] if queue else [name]
                    say(_json_line(name, run) if json else visible(_line(run, _WIDEST_TIME, *of_several)))
                has_begun, away = True, ""
            except BackendError as error:
                if not has_begun:
                    raise
                if away != str(error):
                    remark(f"{error} It goes on when Redis answers.")
                away = str(error)
            if news.unreadable > unreadable:
                remark(_unreadable(news.unreadable - unreadable))
                unreadable = news.unreadable
            pause.wait(_EVERY)
    except KeyboardInterrupt:
        return DONE


def _keepers(app: "Lowkiq", only: "type[Worker[Any]] | None") -> list[str]:
    """The queues that keep runs; a remark names the others. Raises ConfigError if there are none."""
    workers = [*app.workers] if only is None else [only]
    others = [worker.__name__ for worker in workers if worker.keep_runs is None]
    listed = f"{', '.join(others[:_NAMED])}{', ...' if len(others) > _NAMED else ''}"
    if len(others) == len(workers):
        raise ConfigError(f"No run is kept by {listed or 'the app'}: set keep_runs = 10_000 in the class of a worker.")
    if others:
        remark(f"note: without {listed}: set keep_runs = 10_000 in the class of a worker to have its runs here.")
    return [worker.queue_name for worker in workers if worker.keep_runs is not None]


def _json_line(queue: str, run: KeptRun) -> str:
    return msgspec.json.encode({"queue": queue, **msgspec.structs.asdict(run)}).decode()


def _unreadable(count: int) -> str:
    return f"{count:,} runs cannot be read: another version of the library wrote them, or they are damaged"


def _window(
    named_queue: NamedQueue,
    at_around: tuple[str | None, str | None],
    between: tuple[str | None, str | None],
    release: str | None,
    now: float,
) -> tuple[float | None, float | None]:
    """The two moments between which the runs ran; None: no such bound. Raises ValueError, ConfigError."""
    from lowkiq_lambda.operate.inspect.releases import began_at

    (at, around), (since, until) = at_around, between
    if at is not None:
        if since is not None or until is not None or release is not None:
            raise ConfigError("--at says when: give neither --since, --until nor --since-release beside it.")
        moment, seconds = moment_of(at, now), seconds_of(around or _AROUND)
        return moment - seconds, moment + seconds
    if around is not None:
        raise ConfigError("--around goes with --at.")
    if since is not None and release is not None:
        raise ConfigError("Give --since or --since-release, not both.")
    begin = None if since is None else moment_of(since, now)
    if release is not None:
        begin = began_at(named_queue.app.operate.releases(), release)
    return begin, None if until is None else moment_of(until, now)


def _lines(view: RunsView) -> Iterator[str]:
    """A line for each run."""
    longest = max((len(duration(run.took or 0.0)) for run in view.runs), default=0)
    for run in view.runs:
        yield _line(run, longest)


def _line(run: KeptRun, longest: int, *queue: str) -> str:
    took = "-" if run.took is None else duration(run.took)
    return "  ".join([utc(run.at), took.rjust(longest), run.outcome.ljust(_WIDEST), *queue, run.id, *_details(run)])


def _details(run: KeptRun) -> Iterator[str]:
    if run.payloads > 1:
        yield f"{run.payloads:,} payloads"
    if run.release is not None:
        yield run.release
    if run.error is not None:
        yield run.error


def _remarks(named_queue: NamedQueue, view: RunsView) -> Iterator[str]:
    """What is to be known of the list, beside it."""
    worker = named_queue.worker
    if worker is not None and worker.keep_runs is None:
        yield f"note: {worker.__name__} keeps no runs: set keep_runs = 10_000 in its class."
    elif view.kept_since is not None:
        yield f"{len(view.runs):,} runs; none is missing since {utc(view.kept_since)}"
    else:
        yield "the queue has no runs yet"
    if view.unreadable:
        yield _unreadable(view.unreadable)
    if view.lost:
        yield f"{view.lost:,} runs were lost, as Redis had no room for them"
    if view.next is not None:
        yield f"more: --after {view.next}"
