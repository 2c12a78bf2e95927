"""`lowkiq ls`: the jobs of a queue that wait, are in flight, or are dead; all of them, or those that fit a search."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.filters import FILTERS, SEARCH, SearchOptions, id_filter_of
from lowkiq_lambda.cli.output import remark, say, table, write_json
from lowkiq_lambda.cli.parts import After, AppOption, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.inspect.paging import LARGEST_PAGE
from lowkiq_lambda.operate.presentation.formatting import ago

if TYPE_CHECKING:
    from lowkiq_lambda.operate.presentation.jobs import DeadJob, DeadJobs, Payload, WaitingJob, WaitingJobs

Where: TypeAlias = Literal["waiting", "morgue", "in-flight"]
ReadPage: TypeAlias = "Callable[[str | None], WaitingJobs | DeadJobs]"

_HELP: Final = """
List the jobs of QUEUE: those that wait, that are in flight, or that are dead (in the morgue), with the beginning of \
the first payload of each.

The list is by the time at which jobs are due, or died; of jobs in flight by shard. The app's mask hides the same here \
as on the dashboard. With a search one call looks at some 50,000 jobs, so that an empty list may have a `next`; with \
--all the command goes on to the end.
"""
_EPILOGUE: Final = f"""{FILTERS}  Of jobs in flight: prefix, least_id, most_id, error and fingerprint.

COLUMNS
  DUE, DIED  when the job is due, or died; "blocked", "paused": it waits for
             an operator
  RETRIES    how often it was retried; "-" before the first failure
  MORE       how many payloads it has beside the one that is printed
  ERROR      the last one

EXIT CODES
  0  The jobs are printed, be there none.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  What failed by a timeout, and waits for its retry:
    lowkiq ls SyncOrder --error timeout
  The ids of all dead jobs, for a program:
    lowkiq ls SyncOrder --in morgue --all --json | jq --raw-output '.id'
  What has failed at least three times:
    lowkiq ls SyncOrder --filter least_count=2
"""
_LONGEST: Final = 60
"""Letters of an id, an error or a payload in a table."""

command: Final = command_app("ls", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq ls [OPTIONS] QUEUE")


@command.default
def ls(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *,
    where: Annotated[Where, Parameter(name="--in", help="Which of its lists.")] = "waiting",
    search: SearchOptions = SEARCH,
    reverse: Annotated[bool, flag("The latest first; not of jobs in flight.")] = False,
    limit: Annotated[int, Parameter(help="The largest number of jobs.", converter=whole_number(1, LARGEST_PAGE))] = 100,
    after: After = None,
    all_: Annotated[bool, flag("All pages, so many jobs at once; with --json a line for each job.")] = False,
    app: AppOption = None,
    json: Annotated[bool, flag("Write jobs and next, as the API does; times are Unix seconds.")] = False,
) -> int:
    """Print them; the exit code."""
    if reverse and where == "in-flight":
        raise ConfigError("--reverse goes with the lists that are by time: waiting and morgue.")
    # A bad filter is refused before Redis is asked.
    terms: dict[str, Any] = {"limit": limit, "filter": id_filter_of(search.words) if search.words else None}
    if where != "in-flight":
        terms["reverse"] = reverse
    read_page = _reader(queue_of(app_of(app), queue), where, terms)
    number, following, is_first = 0, after, True
    while is_first or (all_ and following is not None):
        try:
            page = read_page(following)
        except ValueError as refusal:
            raise ConfigError(f"{str(refusal).removesuffix('.')}.") from refusal
        _print(page, json=json, lines=all_, is_first=is_first)
        number, following, is_first = number + len(page.jobs), page.next, False
    if not json:
        remark(_remark(number, following))
    return DONE


def _reader(named_queue: NamedQueue, where: Where, terms: dict[str, Any]) -> ReadPage:
    from lowkiq_lambda.operate.presentation.jobs import DeadJobs, JobSerializer, WaitingJobs

    serializer = JobSerializer(named_queue.name, named_queue.shards.number_for, named_queue.app.config.mask)
    glimpse = named_queue.operate.glimpse()

    def dead(after: str | None) -> DeadJobs:
        page = glimpse.morgue.list(**terms, after=after)
        return DeadJobs(jobs=[*map(serializer.dead, page)], next=page.next, cut=page.cut)

    def others(after: str | None) -> WaitingJobs:
        page = (glimpse.waiting if where == "waiting" else glimpse.in_flight).list(**terms, after=after)
        return WaitingJobs(jobs=[*map(serializer.waiting, page)], next=page.next, cut=page.cut)

    return dead if where == "morgue" else others


def _print(page: "WaitingJobs | DeadJobs", *, json: bool, lines: bool, is_first: bool) -> None:
    from lowkiq_lambda.operate.presentation.jobs import DeadJobs

    if json and lines:
        say(*(msgspec.json.encode(job).decode() for job in page.jobs))
    elif json:
        write_json(page)
    elif page.jobs:
        now = SystemClock.time()
        if isinstance(page, DeadJobs):
            head: tuple[str, ...] = ("ID", "DIED", "MORE", "ERROR", "PAYLOAD")
            rows = [(job.id, ago(job.updated_at - now), *_rest(job)) for job in page.jobs]
        else:
            head = ("ID", "DUE", "RETRIES", "MORE", "ERROR", "PAYLOAD")
            rows = [(job.id, job.rests or ago(job.due_at - now), _retries(job), *_rest(job)) for job in page.jobs]
        cut = ([_short(cell) for cell in row] for row in rows)
        title, *text = table(head, cut, {0, 1, len(head) - 2, len(head) - 1})
        say(*([title] if is_first else []), *text)


def _rest(job: "WaitingJob | DeadJob") -> Iterator[str]:
    yield str(job.more_payloads) if job.more_payloads else ""
    yield next(iter((job.error or "").splitlines()), "")
    yield _payload(job.payloads[0]) if job.payloads else ""


def _payload(payload: "Payload") -> str:
    if isinstance(payload.payload, msgspec.Raw):
        return bytes(payload.payload).decode()
    if isinstance(payload.left_out, int):
        return f"({payload.left_out:,} bytes)"
    return "(cannot be decoded)" if isinstance(payload.unreadable, bytes) else "(not shown: the app's mask failed)"


def _retries(job: "WaitingJob") -> str:
    return "-" if job.retry_count < 0 else str(job.retry_count)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _remark(number: int, following: str | None) -> str:
    jobs = f"{number:,} job{'s' if number != 1 else ''}"
    return jobs if following is None else f"{jobs}; more: --after {following}"
