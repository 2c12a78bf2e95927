"""What Prometheus is told beside the numbers of queues: their times, the processes, the duties and the servers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, get_args

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.views.processes import ProcessState
from lowkiq_lambda.views.queues import Quantiles, QueueHistory, ServerView

GONE: Final = "gone"
"""The state of a process that sent no heartbeat for a minute."""


class LabelledFamily(NamedTuple):
    """A gauge with labels of its own, in their order."""

    name: str
    labels: tuple[str, ...]
    help: str


WAITED: Final = LabelledFamily(
    "queue_waited_seconds", ("queue", "quantile"), "Wait of batches of the last ten minutes, from due to begun."
)
TOOK: Final = LabelledFamily(
    "queue_took_seconds", ("queue", "quantile"), "Run time of batches of the last ten minutes."
)
PROCESSES: Final = LabelledFamily(
    "processes", ("state",), "Daemons and invocations on the server, by state; gone: without a heartbeat for a minute."
)
DUTY_FAILURES: Final = LabelledFamily("duty_failures", ("duty",), "Runs of a duty that failed in a row.")
DUTY_LATE: Final = LabelledFamily("duty_late_seconds", ("duty",), "How long a duty has been due that nobody runs.")
MEMORY: Final = LabelledFamily("redis_memory_bytes", ("server",), "Memory that the server uses.")
MEMORY_LIMIT: Final = LabelledFamily("redis_memory_limit_bytes", ("server",), "Its maxmemory, if it has one.")
LABELLED_FAMILIES: Final = (WAITED, TOOK, PROCESSES, DUTY_FAILURES, DUTY_LATE, MEMORY, MEMORY_LIMIT)

Values = Iterable[tuple[tuple[str, ...], float]]
"""The values of labels, each with its number."""


def times(histories: Iterable[tuple[str, QueueHistory]]) -> Iterator[str]:
    """The lines of the queues' times; none of a queue in which nothing ran for ten minutes."""
    queues = [*histories]
    yield from told(WAITED, _quantiles((name, history.waited) for name, history in queues))
    yield from told(TOOK, _quantiles((name, history.took) for name, history in queues))


def of_servers(servers: Iterable[ServerView]) -> Iterator[str]:
    """The lines of the servers' memory."""
    views = [*servers]
    yield from told(MEMORY, [((view.address,), view.memory) for view in views if view.memory is not None])
    yield from told(MEMORY_LIMIT, [((view.address,), view.memory_limit) for view in views if view.memory_limit])


def of_work(operations: Operations, now: float) -> Iterator[str]:
    """The lines of processes and duties. If the server refuses to tell of one, that has no lines."""
    yield from _unless_refused(lambda: _of_processes(operations))
    yield from _unless_refused(lambda: _of_duties(operations, now))


def _of_processes(operations: Operations) -> Iterator[str]:
    counts = dict.fromkeys((*get_args(ProcessState), GONE), 0)
    for process in operations.processes():
        counts[GONE if process.is_gone else process.state] += 1
    yield from told(PROCESSES, [((state,), count) for state, count in counts.items()])


def _of_duties(operations: Operations, now: float) -> Iterator[str]:
    duties = operations.duties()
    yield from told(DUTY_FAILURES, [((duty.name,), duty.failures) for duty in duties])
    late = [((duty.name,), 0.0 if duty.is_running else max(0.0, now - duty.next_run)) for duty in duties]
    yield from told(DUTY_LATE, late)


def _unless_refused(read: Callable[[], Iterable[str]]) -> list[str]:
    with suppress(LowkiqError):
        return [*read()]
    return []


def _quantiles(queues: Iterable[tuple[str, Quantiles | None]]) -> Values:
    for name, quantiles in queues:
        if quantiles is not None:
            yield (name, "0.5"), quantiles.p50
            yield (name, "0.95"), quantiles.p95


def told(family: LabelledFamily, values: Values) -> Iterator[str]:
    """Its lines in the text format."""
    yield f"# HELP lowkiq_{family.name} {family.help}"
    yield f"# TYPE lowkiq_{family.name} gauge"
    for labels, value in values:
        pairs = ",".join(f'{name}="{escaped(label)}"' for name, label in zip(family.labels, labels, strict=True))
        yield f"lowkiq_{family.name}{{{pairs}}} {value!r}"


def escaped(label: str) -> str:
    """The value of a label, as it stands between quotes."""
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
