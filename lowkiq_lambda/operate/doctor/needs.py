"""What needs somebody: the findings that are not well, worst first, each with its act. All who tell of it share it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lowkiq_lambda.operate.doctor.findings import Act, Finding, Mark, Need
from lowkiq_lambda.store.shard.nodes import FAR

ORDER: Final = (
    *("role", "cluster", "version", "eviction", "memory", "persistence", "replicas", "durability"),
    *(
        "damage",
        "declarations",
        "least version",
        "releases",
        "shards",
        "verify",
        "due work",
        "duties",
        "schedules",
        "drain schedules",
    ),
    *(
        "late",
        "hung",
        "failing",
        "blocked ids",
        "moves",
        "unused time",
        "stalls",
        "out of memory",
        "gone",
        "paused",
        "paused tenants",
        "limits",
        "expired",
        "morgue",
    ),
    *("other queues", "payload types", "slow", "clock", "versions", "quiet", "address", "user", "processes", "keys"),
    "accounts",
    "results",
)
"""The checks of each mark, worst first."""
_HAVE_ACTS: Final = {"actions/queue", "tenants", "waiting", "errors", "limits", "morgue"}
"""Pages of a queue on which somebody does what a line on it calls for."""


def needs_of(findings: Iterable[Finding]) -> tuple[Need, ...]:
    """Of these findings what is broken, then what is to be looked at, each in the order of `ORDER`."""
    marks: tuple[Mark, ...] = ("broken", "warning")
    wrong = [finding for finding in findings if finding.mark in marks]
    wrong.sort(key=lambda finding: (marks.index(finding.mark), ORDER.index(finding.check), finding.about))
    return tuple(map(_need, wrong))


def _need(finding: Finding) -> Need:
    return Need(
        check=finding.check,
        mark=finding.mark,
        about=finding.about,
        says=finding.says,
        advice=finding.advice,
        act=_ACTS.get(finding.check, _see_server)(finding.about),
    )


def _see_server(_about: str) -> Act:
    return Act(label="See the server", page="")


def _see_processes(_about: str) -> Act:
    return Act(label="See the processes", page="processes", command="lowkiq processes")


def _of_queue(label: str, page: str, command: str = "", **query: str) -> Callable[[str], Act]:
    """An act on the page of the queue that the finding is about."""

    def act(about: str) -> Act:
        fields = {"queue": about, **query}
        return Act(label=label, page=page, query=fields, command=command.format(about), is_there=page in _HAVE_ACTS)

    return act


def _go_on_with_move(about: str) -> Act:
    return Act(label="Go on, or turn round", page="shards", query={"queue": about}, is_there=True)


def _open_entry(about: str) -> Act:
    queue, _, name = about.rpartition("/")
    if not queue:
        return Act(label="See the entries", page="schedules")
    return Act(label="Open the entry", page="schedule", query={"queue": queue, "name": name}, is_there=True)


_ACTS: Final[Mapping[str, Callable[[str], Act]]] = {
    **dict.fromkeys(("gone", "out of memory", "quiet", "slow", "versions", "duties", "processes"), _see_processes),
    **dict.fromkeys(("other queues", "drain schedules", "due work"), _see_processes),
    "schedules": _open_entry,
    "paused": _of_queue("Resume…", "actions/queue", "lowkiq resume {}", do="resume", back="queue"),
    "paused tenants": _of_queue("See the tenants", "tenants"),
    "blocked ids": _of_queue(
        *("See the blocked ids", "waiting", "lowkiq unblock {}"), by="due_at", range="gte", value=f"{FAR:.0f}"
    ),
    "failing": _of_queue("See the errors", "errors"),
    "late": _of_queue("See why", "queue", "lowkiq why {}"),
    **dict.fromkeys(("hung", "stalls"), _of_queue("See the shards", "shards", "lowkiq processes")),
    "unused time": _of_queue(
        "Forget it…", "actions/queue", "lowkiq forget-timing {}", do="forget_timing", back="queue"
    ),
    "limits": _of_queue("See the limits", "limits"),
    "expired": _of_queue("See what waits", "waiting"),
    "morgue": _of_queue("Open the morgue", "morgue", "lowkiq requeue {}"),
    "moves": _go_on_with_move,
    "damage": _of_queue("See the shards", "shards"),
    **dict.fromkeys(
        ("declarations", "least version", "shards", "verify", "payload types", "results"),
        _of_queue("Open the queue", "queue"),
    ),
}
