"""The screen of `lowkiq top`: one look, and what its keys have chosen, as lines of a terminal."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from lowkiq_lambda.cli.top_looks import Look
from lowkiq_lambda.operate.presentation.formatting import duration, rate, short, visible
from lowkiq_lambda.operate.presentation.trouble import Severity, Trouble
from lowkiq_lambda.views.queues import QueueOverview

Page: TypeAlias = Literal["queues", "queue", "errors", "processes", "keys"]

WIDE: Final = 120
"""Columns from which a queue has all of its numbers."""
STALE: Final = 6.0
"""Seconds after which a look is old."""
_NUMBERS: Final = 46
_NUMBERS_WIDE: Final = 80
"""Columns that the numbers of a queue take."""
_LONGEST_NAME: Final = 28
_REMARK: Final = 8
_NEEDS: Final = 5
_BARS: Final = "▁▂▃▄▅▆▇█"
_SPARK: Final = 16
_KEYS: Final = {
    "j, k, arrows": "move",
    "Enter": "open the queue",
    "Esc": "go back; end a filter",
    "/": "filter queues by a part of their name",
    "e": "last errors of all queues",
    "P": "processes",
    "p": "pause the queue, or resume it; it asks",
    "r": "requeue the whole morgue of the queue; it asks",
    "?": "these keys",
    "q": "quit",
}


class OnScreen(msgspec.Struct, kw_only=True):
    """The choice of the keys. `question`: waits for an answer; `message`: the outcome of the last act."""

    page: Page = "queues"
    row: int = 0
    filter: str = ""
    is_typing: bool = False
    queue: str = ""
    question: str = ""
    message: str = ""


def rows_of(look: Look, choice: OnScreen) -> list[QueueOverview]:
    """The queues that the filter lets through, in trouble first."""
    return [queue for queue in look.queues if choice.filter.casefold() in queue.name.casefold()]


def screen(look: Look, choice: OnScreen, now: float, width: int, height: int) -> Group:
    """All lines, of a terminal of that size."""
    body = {
        "queues": _queues,
        "queue": _queue,
        "errors": _errors,
        "processes": _processes,
        "keys": lambda *_: [Text(f"  {key:14}{words}") for key, words in _KEYS.items()],
    }[choice.page](look, choice, width, height)
    return Group(_head(look, now, width), *body, _foot(choice))


def _head(look: Look, now: float, width: int) -> Text:
    nows = [queue.now for queue in look.queues if not queue.mismatch]
    pasts = [queue.history for queue in look.queues]
    failed, age = sum(past.failed_rate for past in pasts), now - look.at
    line = Text(no_wrap=True).append("lowkiq top  ", "bold")
    if look.problem:
        line.append(f"as of {age:.0f} s ago: {visible(look.problem)}", "bold red")
    elif not look.queues and age < STALE:
        line.append("reading ...", "dim")
    else:
        line.append(f"as of {age:.0f} s ago", "bold red" if age > STALE else "dim")
    line.append(f"  ended {rate(sum(past.ended_rate for past in pasts))}/s", "")
    line.append(f"  failed {rate(failed)}/s", "red" if failed else "")
    line.append(f"  waiting {short(sum(now.length for now in nows))}")
    line.append(f"  morgue {short(sum(now.morgue_length for now in nows))}")
    if width >= WIDE:
        line.append(f"  in flight {short(sum(now.in_flight for now in nows))}")
    line.truncate(width, overflow="ellipsis")
    return line


def _foot(choice: OnScreen) -> Text:
    if choice.question:
        return Text(f" {choice.question} y: yes, any other key: no ", "bold reverse")
    if choice.is_typing:
        return Text(f" /{choice.filter}_  Enter: keep, Esc: end ", "reverse")
    keys = " Enter open  / filter  e errors  P processes  p pause  r requeue  ? keys  q quit "
    return Text.assemble((choice.message + "\n", "bold") if choice.message else "", (keys, "reverse"))


def _mark(severity: Severity) -> Text:
    """The beginning of a line, which says it without colours, too. Only it is yellow: words would be lost on white."""
    return Text(no_wrap=True).append("! " if severity == "act" else "~ ", "bold red" if severity == "act" else "yellow")


def _cut(text: str, style: str = "", *, width: int) -> Text:
    """One line, cut at the edge of the terminal."""
    line = Text(text, style, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line


def _queues(look: Look, choice: OnScreen, width: int, height: int) -> Iterable[Text | Table]:
    if look.needs:
        yield Text(f"Needs somebody: {len(look.needs)}", "bold")
        for need in look.needs[:_NEEDS]:
            about = f"{visible(need.about)}: " if need.about else ""
            line = _mark("act" if need.mark == "broken" else "look").append(f"{about}{visible(need.says)}")
            line.truncate(width, overflow="ellipsis")
            yield line
    elif look.queues:
        yield Text("Nothing needs anybody.", "dim")
    if choice.filter:
        yield Text(f"Queues with “{choice.filter}” in their names", "dim")
    is_wide = width >= WIDE
    table = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    table.add_column("QUEUE", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in (*(("10 MIN",) if is_wide else ()), "WAITING", "LAG", "IN FLIGHT", "RETRIES", "MORGUE"):
        table.add_column(name, justify="left" if name == "10 MIN" else "right", no_wrap=True)
    if is_wide:
        table.add_column("ENDED/S", justify="right", no_wrap=True)
        table.add_column("FAIL/S", justify="right", no_wrap=True)
    rows = rows_of(look, choice)
    names = min(_LONGEST_NAME, 2 + max((len(queue.name) for queue in rows), default=0))
    # Names before remarks: a queue has to be told from others.
    left = max(_REMARK, width - (_NUMBERS_WIDE if is_wide else _NUMBERS) - names)
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=left)
    room = max(3, height - 6 - min(len(look.needs), _NEEDS))
    begin = max(0, min(choice.row - room // 2, len(rows) - room))
    for number, queue in enumerate(rows[begin : begin + room], begin):
        cells = _cells(queue, look.troubles[queue.name], is_wide=is_wide)
        table.add_row(*cells, style="reverse" if number == choice.row else "")
    yield table
    if len(rows) > room:
        yield Text(f"{begin + 1} to {min(len(rows), begin + room)} of {len(rows)} queues", "dim")


def _cells(queue: QueueOverview, trouble: Trouble, *, is_wide: bool) -> Iterable[Text]:
    now, past = queue.now, queue.history
    colour = "red" if trouble.words and trouble.severity == "act" else ""
    yield (_mark(trouble.severity) if trouble.words else Text("  ")).append(visible(queue.name), "bold")
    if is_wide:
        yield Text(spark(past.series.ended))
    if queue.mismatch:
        yield from (Text("-") for _ in range(7 if is_wide else 5))
        yield Text("declared otherwise", colour)
        return
    lag = Text(duration(now.lag) if now.lag else "·", colour if now.lag else "dim")
    yield from (_number(now.length), lag, _number(now.in_flight), _number(now.retries), _number(now.morgue_length))
    if is_wide:
        yield Text(rate(past.ended_rate))
        yield Text(rate(past.failed_rate), "red" if past.failed_rate else "")
    yield Text(trouble.words or ("paused" if now.paused else ""), colour)


def _number(value: int) -> Text:
    return Text(short(value)) if value else Text("·", "dim")


def spark(values: Sequence[int]) -> str:
    """The last values as bars, the newest at the right; a dot for none."""
    size = max(1, -(-len(values) // _SPARK))
    sums = [sum(values[max(0, end - size) : end]) for end in range(len(values), 0, -size)][::-1]
    top = max(sums, default=0) or 1
    return "".join(_BARS[(each * (len(_BARS) - 1)) // top] if each else "·" for each in sums)


def _queue(look: Look, choice: OnScreen, width: int, _height: int) -> Iterable[Text | Table]:
    queue = next((each for each in look.queues if each.name == choice.queue), None)
    yield Text(visible(choice.queue), "bold")
    if queue is None:
        return
    now, past = queue.now, queue.history
    yield Text(visible(look.sentence) or "reading ...", overflow="fold")
    facts = {
        "waiting": short(now.length),
        "of these have failed": short(now.retries),
        "blocked": short(now.blocked),
        "lag": duration(now.lag),
        "kept back by a pause for": duration(now.paused_lag),
        "kept back by a limit for": duration(now.limited_lag),
        "in flight": short(now.in_flight),
        "in the morgue": short(now.morgue_length),
        "shards": f"{queue.shards_count}, {now.paused} of them paused",
        "ended in a second": rate(past.ended_rate),
        "failed in a second": rate(past.failed_rate),
        "batch p50, p95": "" if past.took is None else f"{duration(past.took.p50)}, {duration(past.took.p95)}",
        "wait p50, p95": "" if past.waited is None else f"{duration(past.waited.p50)}, {duration(past.waited.p95)}",
    }
    for name, value in facts.items():
        yield Text(f"  {name:26}{value or '-'}")
    of_queue = [(of.count, each.line) for each in look.errors for of in each.queues if of.queue == choice.queue]
    for count, line in sorted(of_queue, key=lambda error: -error[0])[:5]:
        yield _cut(f"  {short(count):>6} x {visible(line)}", width=width)


def _errors(look: Look, _choice: OnScreen, width: int, height: int) -> Iterable[Text | Table]:
    yield Text("Last errors, the most frequent first", "bold")
    if not look.errors:
        yield Text("No id has failed.", "dim")
    for group in look.errors[: max(3, height - 4)]:
        queues = ", ".join(of.queue for of in group.queues)
        yield _cut(f"  {short(group.count):>6} x {visible(queues)}: {visible(group.line)}", width=width)


def _processes(look: Look, _choice: OnScreen, width: int, height: int) -> Iterable[Text | Table]:
    yield Text("Processes that drain", "bold")
    if not look.processes:
        yield Text("No process drains, as far as is known.", "dim")
    for process in look.processes[: max(3, height - 4)]:
        doing = ", ".join(f"{each.queue}/{each.shard}" for each in process.doing)
        state = "gone" if process.is_gone else process.state
        text = (
            f"  {visible(process.id)}  {process.kind}  {state}  {len(process.doing)} of {process.threads} busy  {doing}"
        )
        yield _cut(text, "red" if process.is_gone else "", width=width)
