"""The kept runs of a queue, by time, id and outcome."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil, floor
from typing import Any, Final, get_args

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import PAGE, chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.jobs.keep_runs import KeepRuns
from lowkiq_lambda.operate.presentation.formatting import quoted, visible
from lowkiq_lambda.operate.presentation.moments import moment_of, seconds_of
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.views.runs import KeptRun, RunOutcome

_TONES: Final = {"done": "", "later": "", "returned": "", "dead": "bad", "rejected": "bad"}
"""The look of an outcome; "warn" if it is not here."""
_AROUND: Final = "5m"
_FIELDS: Final = ("at", "around", "since", "until", "id", "outcome", "fingerprint", "release", "took")


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `link`: to the page of its job; None if the id is too long."""

    run: KeptRun
    name: str
    link: str | None
    tone: str
    error: str | None


def show(context: RequestContext) -> Response:
    """The page."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    fields = {name: text for name in _FIELDS if (text := context.query.get(name, "").strip())}
    after = context.query.get("after")
    queue, name = context.app.operate(worker), worker.queue_name
    wrong, page = "", None
    # Before the looks, each of which would read the declaration.
    _ = queue.reader
    with Together() as side:
        listed = side.look(lambda: queue.runs(**_filter(fields, context.site.now()), limit=PAGE, after=after))
        shards, releases = side.look(queue.shards), side.look(context.app.operate.releases)
    try:
        page = listed.result
    except (JobError, ValueError) as error:
        wrong = visible(str(error).removesuffix("."))
    runs = [] if page is None else page
    return context.render(
        "runs.html",
        200 if page is not None else 400,
        queue=name,
        shards=shards.result,
        keeps=worker.keep_runs is not None,
        replays=worker.keep_runs is not None and KeepRuns.of(worker.keep_runs).payloads,
        replay=context.link("actions/replay", queue=name, **_window(fields, context.site.now())),
        worker=worker.__name__,
        fields=fields,
        around=_AROUND,
        now=context.site.now(),
        outcomes={name: name for name in get_args(RunOutcome)},
        wrong=wrong,
        page=page,
        rows=[_row(context, name, run) for run in runs],
        releases=[
            (release, context.link("runs", queue=name, since=f"{release.since:.0f}", outcome="retried"))
            for release in releases.result[:3]
        ],
        first=None if after is None else context.link("runs", queue=name, **fields),
        next=None if page is None or page.next is None else context.link("runs", queue=name, **fields, after=page.next),
    )


def _filter(fields: Mapping[str, str], now: float) -> dict[str, Any]:
    """The arguments of these fields. Raises ValueError, with a sentence."""
    arguments: dict[str, Any] = {
        name: fields[name] for name in ("id", "outcome", "fingerprint", "release") if name in fields
    }
    for name in ("since", "until"):
        if name in fields:
            arguments[name] = moment_of(fields[name], now)
    if "at" in fields:
        moment, around = moment_of(fields["at"], now), seconds_of(fields.get("around", _AROUND))
        arguments |= {"since": moment - around, "until": moment + around}
    if "took" in fields:
        arguments["took_over"] = seconds_of(fields["took"])
    return arguments


def _window(fields: Mapping[str, str], now: float) -> dict[str, str]:
    """The times and the outcome of the filter, for the form of a replay; nothing if they cannot be."""
    try:
        arguments = _filter(fields, now)
        # To the second, and none of the runs that are listed is left out.
        window = {"since": floor(arguments.get("since", 0.0)), "until": ceil(arguments.get("until", 0.0))}
        times = {name: f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}" for name, at in window.items() if at}
    except (ValueError, OverflowError, OSError):
        return {}
    return times | ({"outcome": fields["outcome"]} if "outcome" in fields else {})


def _row(context: RequestContext, queue: str, run: KeptRun) -> RunRow:
    return RunRow(
        run=run,
        name=shown_id(run.id),
        link=context.link("job", queue=queue, id=run.id) if len(quoted(run.id)) <= LONGEST_LINK else None,
        tone=_TONES.get(run.outcome, "warn"),
        error=None if run.error is None else visible(run.error),
    )
