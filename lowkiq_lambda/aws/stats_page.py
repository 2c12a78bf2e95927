"""The numbers of all queues as a page: totals, and a row for each queue."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.web import Answer, Request, Respond, notice, page
from lowkiq_lambda.errors import BackendError, LowkiqError
from lowkiq_lambda.views import QueueMetrics

_COLUMNS: Final = (
    "Lag",
    "Waiting",
    "of these retries",
    "In flight",
    "Morgue",
    "Processed",
    "Failures",
    "Dead",
    "Shards",
)
_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400


def stats_pages(load: Callable[[], Lowkiq]) -> Respond:
    """Responds with the page, or with a word on health; `load` is called for each request."""

    def respond(request: Request) -> Answer:
        if request.path not in {"", "/", "/healthz"}:
            return notice(404, "Not here", "There is no such page.")
        if request.method not in {"GET", "HEAD"}:
            return notice(405, "Look only", "This page can be read, nothing else.", allow="GET, HEAD")
        try:
            metrics = load().metrics()
        except LowkiqError as error:
            return _trouble(request, error)
        if request.path == "/healthz":
            return Answer(body="ok\n", media_type="text/plain; charset=utf-8")
        return Answer(body=_page(metrics, datetime.now(UTC)))

    return respond


def duration(seconds: float) -> str:
    """For people: two units at most.

    >>> [duration(seconds) for seconds in (0, 1.26, 75, 7_500, 300_000)]
    ['0 s', '1.3 s', '1 min 15 s', '2 h 5 min', '3 d 11 h']
    """
    if seconds < _MINUTE:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"
    return f"{int(seconds // _DAY)} d {int(seconds % _DAY // _HOUR)} h"


def _trouble(request: Request, error: LowkiqError) -> Answer:
    title = "Redis does not answer" if isinstance(error, BackendError) else "The app cannot be shown"
    if request.path == "/healthz":
        return Answer(status=503, body=f"{title}: {error}\n", media_type="text/plain; charset=utf-8")
    return notice(503, title, str(error))


def _page(metrics: Mapping[str, QueueMetrics], at: datetime) -> str:
    head = f'<header><h1>lowkiq</h1><p>{at:%Y-%m-%d %H:%M:%S} UTC · <a href="">look again</a></p></header>'
    if not metrics:
        return page("lowkiq", head + "<p>The app declares no worker, so there is no queue to show.</p>")
    return page("lowkiq", head + _totals([*metrics.values()]) + _table(metrics))


def _totals(queues: Sequence[QueueMetrics]) -> str:
    morgue = sum(queue.morgue_length for queue in queues)
    numbers = {
        "Lag": duration(max(queue.lag for queue in queues)),
        "Waiting": _count(sum(queue.length for queue in queues)),
        "In flight": _count(sum(queue.busy for queue in queues)),
        "Morgue": _warned(morgue),
        "Processed": _count(sum(queue.processed for queue in queues)),
    }
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in numbers.items()) + "</dl>"


def _table(metrics: Mapping[str, QueueMetrics]) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Queue", *_COLUMNS))
    rows = "".join(_row(name, queue) for name, queue in metrics.items())
    return (
        '<p id="note">Numbers of ids. The lag is how long the oldest due id has waited; '
        "what was processed, failed and died is counted since the queue was made.</p>"
        '<div class="table"><table aria-describedby="note">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(name: str, queue: QueueMetrics) -> str:
    cells = (
        duration(queue.lag),
        _count(queue.length),
        _count(queue.retries),
        _count(queue.busy),
        _warned(queue.morgue_length),
        _count(queue.processed),
        _count(queue.failed),
        _count(queue.dead),
        _count(len(queue.shards)),
    )
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _count(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _warned(number: int) -> str:
    return f'<span class="warn">{_count(number)}</span>' if number else "0"
