"""The workloads: what a shard is declared with, and what is done to it, so that the lines of each feature run."""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["done", "returned", "retried", "later", "suspected", "rejected", "expired", "saved", "exited"]


RETRIES: Final = 1
"""Of an id that always fails."""


class Workload(NamedTuple):
    """One of them. `steps` are of one run; `weights` are of what becomes of an id."""

    name: str
    declared: Mapping[str, Any] = {}
    dead_head: str = "skip"
    ids: tuple[str, ...] = ("a", "b", "c:1", "c:2", "bad-1", "bad-2")
    weights: Mapping[Kind, int] = {"done": 10, "returned": 2, "retried": 1}
    many: int = 3
    """Payloads of an id in a push, at most."""
    followers: int = 1
    """Payloads of an id that always fails in a push, at most."""
    pad: int = 20
    """Bytes of a payload, at most."""
    beside: bool = False
    deaths: int = 2
    """How likely processes die, stand still, or lose their lease."""
    headers: bool = False
    tracked: bool = False
    journal: bool = False
    once_more: float = 0.0
    """How likely a payload that was pushed before is pushed again."""
    late: int = 6
    """How likely a call that was held back arrives, behind others."""
    steps: int = 40


_TROUBLED: Final[Mapping[Kind, int]] = {
    "done": 8,
    "returned": 2,
    "retried": 3,
    "later": 2,
    "suspected": 4,
    "saved": 2,
    "exited": 1,
}
WORKLOADS: Final = (
    Workload("plain"),
    Workload("large", many=40, pad=700, ids=("a", "b", "bad-1")),
    Workload("long payloads", weights=_TROUBLED, many=1, pad=400),
    Workload("many ids", ids=tuple(f"id-{number}" for number in range(150)), many=2, steps=24),
    Workload("in trouble", weights=_TROUBLED),
    Workload("dying", weights={"done": 6, "suspected": 2}, deaths=8),
    Workload("late calls", ids=("a", "b"), weights={"done": 1}, deaths=1, late=30, steps=80),
    Workload("killing", ids=("a", "b", "kill-1", "kill-2"), weights={"done": 6, "suspected": 2}),
    Workload("equal payloads", {"merge": "min"}, weights=_TROUBLED, once_more=0.6, many=6),
    Workload("equal and many", {"merge": "max"}, weights=_TROUBLED, once_more=0.6, many=14, pad=90, ids=("a", "bad-1")),
    Workload("side by side", weights=_TROUBLED, beside=True),
    Workload("without merging", {"merge": "never"}, weights=_TROUBLED, many=12, pad=200),
    Workload("latest", {"merge": "latest"}, weights={**_TROUBLED, "rejected": 2, "expired": 1}),
    Workload("cursors", weights={"done": 4, "saved": 6, "returned": 2, "later": 3, "retried": 2}, deaths=4),
    Workload("tenants", {"tenants": "spread"}, ids=("a:1", "a:2", "b:1", "c:1", "bad-1", "d"), weights=_TROUBLED),
    Workload("headers", weights={**_TROUBLED, "rejected": 3}, headers=True, once_more=0.4, many=6),
    Workload(
        "tasks",
        weights={**_TROUBLED, "rejected": 6, "expired": 3},
        tracked=True,
        ids=("a", "b", "c", "kill-1", "bad-1"),
    ),
    Workload("blocked heads", dead_head="block", ids=("a", "b", "kill-1", "bad-1", "bad-2")),
    Workload("blocked items", dead_head="block", tracked=True, ids=("a", "kill-1", "bad-1", "bad-2"), many=5),
    Workload("dropped items", dead_head="drop", tracked=True, ids=("a", "b", "kill-1", "bad-1"), many=5),
    Workload("dropped heads", dead_head="drop", ids=("a", "b", "kill-1", "bad-1", "bad-2"), many=12),
    Workload("a thousand followers", dead_head="drop", ids=("a", "bad-1"), followers=1_500, steps=10),
    Workload("latest of heads", dead_head="latest", ids=("a", "b", "kill-1", "bad-1", "bad-2"), many=12),
    Workload("journal", weights=_TROUBLED, journal=True, beside=True),
)
