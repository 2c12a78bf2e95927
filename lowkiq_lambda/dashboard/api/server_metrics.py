"""What Prometheus is told beside the numbers of queues: processes, duties, limits, schedules, tasks and the servers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, get_args

from lowkiq_lambda.operate.gauges import Gauges, LimitUse
from lowkiq_lambda.store.shard.duty_claims import DutyState
from lowkiq_lambda.views.processes import Process, ProcessState
from lowkiq_lambda.views.queues import ServerView

GONE: Final = "gone"
"""The state of a process that sent no heartbeat for a minute."""


class LabelledFamily(NamedTuple):
    """A metric with labels of its own, in their order."""

    name: str
    labels: tuple[str, ...]
    help: str
    kind: str = "gauge"


WAITED: Final = LabelledFamily(
    *("queue_waited_seconds", ("queue",), "Wait of batches, from due to begun, since this process looked first."),
    kind="histogram",
)
TOOK: Final = LabelledFamily(
    *("queue_took_seconds", ("queue",), "Run time of batches, since this process looked first."),
    kind="histogram",
)
WANTED_HOLDERS: Final = LabelledFamily(
    "wanted_holders", (), "The sum of the queues' wanted holders: divided by the threads of a daemon, its replicas."
)
PROCESSES: Final = LabelledFamily(
    "processes", ("state",), "Daemons and invocations on the server, by state; gone: without a heartbeat for a minute."
)
DUTY_FAILURES: Final = LabelledFamily("duty_failures", ("duty",), "Runs of a duty that failed in a row.")
DUTY_LATE: Final = LabelledFamily("duty_late_seconds", ("duty",), "How long a duty has been due that nobody runs.")
MOST_RUNNING: Final = LabelledFamily("limit_max_running", ("queue",), "How many shards may be drained at once.")
RUNNING: Final = LabelledFamily("limit_running", ("queue",), "How many of these are drained now.")
WAITING_SHARDS: Final = LabelledFamily("limit_waiting_shards", ("queue",), "Shards that wait for a limit.")
RATE: Final = LabelledFamily("limit_rate", ("queue",), "How many ids may begin in a second.")
IDS_LEFT: Final = LabelledFamily("limit_ids_left", ("queue",), "How many ids may begin now.")
PUT_OFF: Final = LabelledFamily(
    "limiter_put_off_total", ("limiter",), "Refusals of limiters that handlers ask.", "counter"
)
ENTRIES: Final = LabelledFamily(
    "schedule_entries", ("queue", "state"), "Schedule entries that are on, off, or cannot fire (broken)."
)
ENTRY_LATE: Final = LabelledFamily(
    "schedule_late_seconds", ("queue",), "Since when a planned time of an entry is not decided: nobody fires it."
)
OPEN_TASKS: Final = LabelledFamily("open_tasks", (), "Tasks that are not complete.")
TASK_ITEMS: Final = LabelledFamily(
    "open_task_items", ("status",), "Their items, by status; absent if more than 50 are open."
)
MEMORY: Final = LabelledFamily("redis_memory_bytes", ("server",), "Memory that the server uses.")
MEMORY_LIMIT: Final = LabelledFamily("redis_memory_limit_bytes", ("server",), "Its maxmemory, if it has one.")
LABELLED_FAMILIES: Final = (
    *(
        WAITED,
        TOOK,
        WANTED_HOLDERS,
        PROCESSES,
        DUTY_FAILURES,
        DUTY_LATE,
        MOST_RUNNING,
        RUNNING,
        WAITING_SHARDS,
        RATE,
        IDS_LEFT,
    ),
    *(PUT_OFF, ENTRIES, ENTRY_LATE, OPEN_TASKS, TASK_ITEMS, MEMORY, MEMORY_LIMIT),
)

Values = Iterable[tuple[tuple[str, ...], float | None]]
"""The values of labels, each with its number; None: it has none."""


def of_servers(servers: Iterable[ServerView]) -> Iterator[str]:
    """The lines of the servers' memory."""
    views = [*servers]
    yield from told(MEMORY, [((view.address,), view.memory) for view in views])
    yield from told(MEMORY_LIMIT, [((view.address,), view.memory_limit or None) for view in views])


def of_gauges(gauges: Gauges, now: float) -> Iterator[str]:
    """The lines of processes, duties, limits, schedules and tasks."""
    yield from _of_processes(gauges.processes)
    yield from _of_duties(gauges.duties, now)
    limits = gauges.limits.items()
    for family, field in _LIMITS.items():
        yield from told(family, [((queue,), getattr(use, field)) for queue, use in limits])
    if gauges.put_off:
        yield from told(PUT_OFF, [((limiter,), count) for limiter, count in gauges.put_off.items()])
    entries = gauges.entries.items()
    yield from told(ENTRIES, [((queue, state), n) for queue, use in entries for state, n in use.states.items()])
    yield from told(ENTRY_LATE, [((queue,), use.late) for queue, use in entries])
    if gauges.tasks is not None:
        yield from told(OPEN_TASKS, [((), gauges.tasks.open)])
        yield from told(TASK_ITEMS, [((status,), count) for status, count in gauges.tasks.items.items()])


_LIMITS: Final = dict(zip((MOST_RUNNING, RUNNING, WAITING_SHARDS, RATE, IDS_LEFT), LimitUse._fields, strict=True))


def _of_processes(processes: Iterable[Process]) -> Iterator[str]:
    counts = Counter(GONE if process.is_gone else process.state for process in processes)
    yield from told(PROCESSES, [((state,), counts[state]) for state in (*get_args(ProcessState), GONE)])


def _of_duties(duties: Sequence[DutyState], now: float) -> Iterator[str]:
    yield from told(DUTY_FAILURES, [((duty.name,), duty.failures) for duty in duties])
    late = [((duty.name,), 0.0 if duty.is_running else max(0.0, now - duty.next_run)) for duty in duties]
    yield from told(DUTY_LATE, late)


def told(family: LabelledFamily, values: Values) -> Iterator[str]:
    """Its lines in the text format."""
    yield from head(family)
    for labels, value in values:
        if value is not None:
            yield line(family.name, zip(family.labels, labels, strict=True), value)


def head(family: LabelledFamily) -> Iterator[str]:
    """The lines that come before those of its values."""
    yield f"# HELP lowkiq_{family.name} {family.help}"
    yield f"# TYPE lowkiq_{family.name} {family.kind}"


def line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    """The line of a value."""
    pairs = ",".join(f'{label}="{escaped(text)}"' for label, text in labels)
    return f"lowkiq_{name}{{{pairs}}} {value!r}" if pairs else f"lowkiq_{name} {value!r}"


def escaped(label: str) -> str:
    """The value of a label, as it stands between quotes."""
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
