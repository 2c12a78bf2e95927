"""A scenario from outside: what it is about, what is beside the queue, and what it came to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.testing.fuzz.plan import Fault
from lowkiq_lambda.testing.fuzz.points import CodePlace, UserCode
from lowkiq_lambda.testing.fuzz.pool import PayloadPool
from lowkiq_lambda.testing.fuzz.process import Delivered


@dataclass
class Observed:
    """What one scenario came to. Lists by drain have a place for each drain of the plan."""

    state: Any = None
    effects: dict[str, list[Any]] = field(default_factory=dict)
    pushes: list[str] = field(default_factory=list)
    """What the handler pushed: queue, id and payload of each."""
    calls: list[Delivered] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    """The ids in the morgue."""
    killed: list[str] = field(default_factory=list)
    """Those of them that a rule of the worker killed."""
    points: list[list[list[CodePlace]]] = field(default_factory=list)
    """The points of each call of the handler, by drain; only if they were recorded."""
    places: list[CodePlace | None] = field(default_factory=list)
    """Where the fault happened, by drain."""
    fired: list[Fault] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """Errors of the handler that are not faults of the plan."""
    never_ends: bool = False
    has_swallowed: bool = False
    was_waited_for: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What is beside the queue: read and reset by functions of the test.

    `release` ends what a dead process leaves open, such as a transaction.
    """

    state: Callable[[], Any]
    effects: Mapping[str, Callable[[], list[Any]]]
    reset: Callable[[], object]
    release: Callable[[], object]
    lock_is_awaited: Callable[[], bool | None] = lambda: None
    """Whether a process waits for a lock of a database; None if no database can say that."""
    begin_in_child: Callable[[], object] = lambda: None
    """Called in a forked child."""
    after_child: Callable[[], object] = lambda: None
    """Called behind it, in the parent."""


@dataclass(frozen=True)
class Subject:
    """The worker under test; `versions`: its pushes have scores."""

    worker: type[Worker[Any]]
    pool: PayloadPool
    user_code: UserCode
    versions: bool
