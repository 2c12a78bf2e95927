"""The models, with the bounds in which all orders of steps are gone through, and the bounds that each guard needs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from lowkiq_lambda.store.shard.moving import MARGIN, SLOT
from tests.models import lease, lease_steps, limits, moving, moving_steps, requests, spans, tenant_rate, wait_list
from tests.models.explorer import Explored, explore
from tests.models.limits import LimitBounds
from tests.models.moving import Mover
from tests.models.requests import RequestBounds
from tests.models.tenant_rate import TenantBounds
from tests.models.wait_list import WaitBounds

FORTH: Final = (Mover(1), Mover(1))
TURNED: Final = (*FORTH, Mover(2, "turn"))
"""Movers of the second epoch turn the move round while those of the first may still stall somewhere."""
TURNED_TWICE: Final = (*TURNED, Mover(2, "turn"))
FORTH_AGAIN: Final = (Mover(1), Mover(2, "turn"), Mover(3, "again"))
A_MOVE: Final = MARGIN + SLOT
"""Numbers that a move may take up at most, besides what is carried."""
PERMITS: Final = LimitBounds(end=3, visits=2, permits=1, rate=0, want=0, stays=0)
LEAVING: Final = LimitBounds(end=1, visits=3, permits=1, rate=0, want=0, stays=0)
RATE: Final = LimitBounds(end=3, visits=2, permits=2, rate=1, want=1, stays=0)
ONE_PERMIT: Final = WaitBounds(end=4, visits=2, permits=1)
TWO_PERMITS: Final = WaitBounds(end=4, visits=1, permits=2)
PERMITS_AND_IDS: Final = WaitBounds(end=3, visits=1, permits=2, rate=2)
ONE_ID: Final = TenantBounds(end=8, claims=2, rate=1)
TWO_IDS: Final = TenantBounds(end=8, claims=3, rate=2)
PUSH_BETWEEN: Final = RequestBounds(pushes=2, sessions=2, acts=2, fails=1, moves=0)
ONE_PUSH: Final = RequestBounds(pushes=1, sessions=2, acts=3, fails=0, moves=1)
FOUR_ACTS: Final = RequestBounds(pushes=1, sessions=1, acts=4, fails=0, moves=0)


class ModelBounds(NamedTuple):
    """How far a model goes: in words, and all orders of steps within that, without a guard if one is named."""

    words: str
    explored: Callable[[Any], Explored]


class ModelCase(NamedTuple):
    """A model. `quick`: bounds of seconds. `guards`: what breaks, and in which bounds, once one is left out."""

    name: str
    words: str
    quick: Sequence[ModelBounds]
    long: Sequence[ModelBounds]
    guards: Mapping[str, tuple[str, ModelBounds]]
    actions: frozenset[str]
    """Parts of the names of all that may happen: a model that never does a thing says nothing of it."""

    def never_done(self, labels: Collection[str]) -> list[str]:
        """The actions that none of these steps is."""
        return sorted(action for action in self.actions if not any(action in label for label in labels))


def lease_explored(
    end: int, payloads: int, without: lease.Guard | None = None, *, deepest: int | None = None
) -> Explored:
    """All orders of steps, with one session of each of the two processes; or of the first `deepest` steps."""
    bounded = partial(lease_steps.steps, end=end, payloads=payloads, sessions=1, without=without)
    return explore(
        lease.LeaseWorld(), bounded, lease.fault, lease.fault_of_end, symmetry=lease.symmetric, deepest=deepest
    )


def moving_explored(movers: tuple[Mover, ...], without: moving.Guard | None = None) -> Explored:
    """All orders of steps with these movers."""
    steps = partial(moving_steps.steps, without=without)
    return explore(moving.at_first(movers), steps, moving.fault, moving.fault_of_end)


def spans_explored(moves: int, pushes: int, without: spans.Guard | None = None) -> Explored:
    """All orders of pushes, drains and moves."""

    def fault(world: spans.SpanWorld) -> str | None:
        if spans.room_taken(world) > world.moves * A_MOVE + spans.IDS * pushes:
            return "moves take up more and more room"
        return spans.fault(world)

    steps = partial(spans.steps, moves=moves, pushes=pushes, without=without)
    return explore(spans.SpanWorld(), steps, fault, lambda _: None)


def limits_explored(
    bounds: LimitBounds, without: limits.Guard | None = None, *, deepest: int | None = None
) -> Explored:
    """All orders of steps of visits to a limited queue; or of the first `deepest` steps."""
    steps = partial(limits.steps, bounds=bounds, without=without)
    fault = partial(limits.fault, bounds=bounds)
    first, forget, symmetry = limits.LimitsWorld(), limits.forget, limits.symmetric
    return explore(first, steps, fault, lambda _: None, forget=forget, symmetry=symmetry, deepest=deepest)


def waits_explored(bounds: WaitBounds, without: wait_list.Guard | None = None) -> Explored:
    """All orders of steps of three shards that ask for a permit."""
    steps = partial(wait_list.steps, bounds=bounds, without=without)
    return explore(wait_list.WaitWorld(), steps, wait_list.fault, lambda _: None)


def tenants_explored(bounds: TenantBounds, without: tenant_rate.Guard | None = None) -> Explored:
    """All orders of steps of the holders of a shard with one tenant."""
    steps = partial(tenant_rate.steps, bounds=bounds, without=without)
    return explore(tenant_rate.TenantWorld(), steps, partial(tenant_rate.fault, rate=bounds.rate), lambda _: None)


def requests_explored(bounds: RequestBounds, without: requests.Guard | None = None) -> Explored:
    """All orders of steps of operators, producers and holders of one id."""
    steps = partial(requests.steps, bounds=bounds, without=without)
    forget = partial(requests.simpler, bounds=bounds)
    return explore(requests.RequestedWorld(), steps, requests.fault, lambda _: None, forget=forget)


def _lease(end: int, payloads: int, deepest: int | None = None) -> ModelBounds:
    words = f"{payloads} payload{'s' * (payloads > 1)}, {end / lease.TTL:g} leases of time"
    first = f", the first {deepest} steps" if deepest else ""
    return ModelBounds(f"{words}{first}", partial(lease_explored, end, payloads, deepest=deepest))


def _moving(words: str, movers: tuple[Mover, ...]) -> ModelBounds:
    return ModelBounds(words, partial(moving_explored, movers))


def _spans(moves: int, pushes: int) -> ModelBounds:
    return ModelBounds(f"{moves} moves, {pushes} pushes between two", partial(spans_explored, moves, pushes))


_FORTH: Final = _moving("two movers", FORTH)
_TURNED: Final = _moving("two movers, and one that turns round", TURNED)
_TURNED_TWICE: Final = _moving("two movers, and two that turn round", TURNED_TWICE)
_FORTH_AGAIN: Final = _moving("forth, back and forth again", FORTH_AGAIN)

LEASE: Final = ModelCase(
    "lease",
    "Two processes acquire, perform, settle, die and freeze; calls and answers are late, doubled or lost; a clock is "
    "slow, a key is evicted, a time is ahead.",
    [_lease(2, 1)],
    [_lease(1, 2), _lease(0, 3), _lease(2, 2, deepest=12), _lease(4, 1, deepest=16)],
    {
        "lease": ("P1", _lease(4, 1)),
        "until": ("P1", _lease(4, 1)),
        "key": ("P1", _lease(4, 1)),
        "nonce and token": ("P2", _lease(2, 2)),
        "token": ("P2", _lease(0, 3)),
        "call number": ("P2", _lease(2, 2)),
        "recovery": ("P2", _lease(2, 2)),
        "recovery in order": ("P3", _lease(2, 2)),
        "margin": ("P1", _lease(4, 1)),
        "trust from the sending": ("P1", _lease(4, 1)),
    },
    frozenset(
        [
            *("a push", "time goes by", "the key is evicted", "acquires", "settles", "gives up", "dies"),
            *("stands still", "goes on", "trusts no longer", "'s handler ends", "arrives, its answer is lost"),
            *("ahead of time", "is answered None", "is answered ()", "is answered (1,)"),
        ]
    ),
)
MOVING: Final = ModelCase(
    "move",
    "Shards move and move back; movers stall or die anywhere, and a push may arrive at any time.",
    [_FORTH],
    [_TURNED_TWICE, _FORTH_AGAIN],
    {
        "token before role": ("P3", _FORTH),
        "receiving rests": ("P3", _FORTH),
        "seal waits": ("P1", _FORTH),
        "receive fenced": ("P3", _FORTH),
        "open waits": ("P3", _FORTH),
        "drop fenced": ("P3", _TURNED),
        "epochs": ("P2", _FORTH_AGAIN),
        "late pushes": ("P3", _FORTH_AGAIN),
        "reopening noted": ("P2", _FORTH_AGAIN),
    },
    frozenset(
        [
            *(f": {order}" for order in ("admit", "still", "seal", "carry", "receive", "drop", "open", "note")),
            *("admit again", "seal again", "open again", "receive refused", "nothing left to carry"),
            *("the client sends", "applied, heard", "applied, not heard", "closed, heard", "closed, not heard"),
            *("runs at shard 0", "runs at shard 1", "settles", "dies", "is recovered"),
        ]
    ),
)
SPANS: Final = ModelCase(
    "arrival numbers",
    "Shards move repeatedly, with pushes and drains between. No number is given twice; later ones are larger.",
    [_spans(8, 1), _spans(3, 2)],
    [],
    {
        "bases": ("a number is given twice", _spans(8, 1)),
        "kin": ("moves take up more and more room", _spans(8, 1)),
    },
    frozenset(["a push of", "a job of", "a move begins", "all is carried"]),
)
_PERMITS: Final = ModelBounds("two visits, one permit", partial(limits_explored, PERMITS))
_LEAVING: Final = ModelBounds(
    "three visits, one permit, the first 7 steps", partial(limits_explored, LEAVING, deepest=7)
)
_RATE: Final = ModelBounds("two visits, one id in a window", partial(limits_explored, RATE))
LIMITS: Final = ModelCase(
    "limits",
    "Visits ask for a permit and for ids that may begin; calls are late, doubled or lost, a visit dies, a time is "
    "ahead.",
    [_PERMITS, _LEAVING],
    [_RATE],
    {
        "permits": ("permits", _PERMITS),
        "margin": ("permits", _PERMITS),
        "trust from the sending": ("permits", _PERMITS),
        "rate": ("rate", _RATE),
        "slack": ("rate", _RATE),
        "nonce": ("permits", _LEAVING),
    },
    frozenset(
        [
            *(" enters", " enters +1", " leaves", "time goes by", "arrives, its answer is lost"),
            *("is answered None", "is answered"),
        ]
    ),
)
_ONE_PERMIT: Final = ModelBounds("three shards, one permit, two visits each", partial(waits_explored, ONE_PERMIT))
_TWO_PERMITS: Final = ModelBounds("three shards, two permits", partial(waits_explored, TWO_PERMITS))
_PERMITS_AND_IDS: Final = ModelBounds(
    "three shards, two permits, two ids in a window", partial(waits_explored, PERMITS_AND_IDS)
)
WAITS: Final = ModelCase(
    "wait list",
    "Three shards ask for permits, wait, and are offered one; a process dies with a permit or in the list, a "
    "notification is lost, a shard misses its offer.",
    [_ONE_PERMIT, _TWO_PERMITS, _PERMITS_AND_IDS],
    [],
    {
        "offers take permits": ("offer", _ONE_PERMIT),
        "offers take ids": ("offer", _PERMITS_AND_IDS),
        "the own offer": ("offer", _ONE_PERMIT),
        "those before first": ("order", _ONE_PERMIT),
        "the place stays": ("order", _ONE_PERMIT),
        "behind the last": ("order", _ONE_PERMIT),
        "offered, so off the list": ("order", _ONE_PERMIT),
        "entered, so off the list": ("order", _ONE_PERMIT),
        "an offer ends": ("order", _ONE_PERMIT),
        "an offer on leaving": ("told", _ONE_PERMIT),
        "when to come again": ("starves", _ONE_PERMIT),
    },
    frozenset(
        [
            *("enters, is answered OK", "enters, is answered FULL", "enters again, is answered OK"),
            *("enters again, is answered FULL", "stays", "leaves", "which visits, dies", "which waits, dies"),
            *("time goes by", "the bell is not heard"),
        ]
    ),
)
_ONE_ID: Final = ModelBounds("two claims, one id in a window", partial(tenants_explored, ONE_ID))
_TWO_IDS: Final = ModelBounds("three claims, two ids in a window", partial(tenants_explored, TWO_IDS))
TENANTS: Final = ModelCase(
    "rate of a tenant",
    "Holders of a shard claim ids of a tenant, begin and settle them, freeze or die, and the shard moves; the time of "
    "a call is ahead or behind.",
    [_ONE_ID, _TWO_IDS],
    [],
    dict.fromkeys(get_args(tenant_rate.Guard), ("rate", _ONE_ID)),
    frozenset(
        [
            *("an id begins", "the holder dies, or freezes", "the lease is renewed", "the holder settles"),
            *("a holder claims", "recovers and claims", "the shard of a dead holder moves", "forgets the lane"),
            *("time goes by", "its time is ahead", "its time is behind"),
        ]
    ),
)
_PUSH_BETWEEN: Final = ModelBounds("two payloads, two acts", partial(requests_explored, PUSH_BETWEEN))
_ONE_PUSH: Final = ModelBounds("one payload, three acts, a move", partial(requests_explored, ONE_PUSH))
_FOUR_ACTS: Final = ModelBounds("one payload, four acts", partial(requests_explored, FOUR_ACTS))
REQUESTS: Final = ModelCase(
    "requests",
    "Two operators cancel, pause, edit and undo what waits under an id and what runs, by looks of before; holders "
    "settle, fail and lose their lease, and the shard moves.",
    [_PUSH_BETWEEN, _ONE_PUSH, _FOUR_ACTS],
    [],
    {
        "honoured at the end": ("a cancelled job runs again", _ONE_PUSH),
        "honoured on recovery": ("a cancelled job runs again", _ONE_PUSH),
        "upto": ("a cancel takes what came later", _ONE_PUSH),
        "newer": ("a cancel takes what came later", _ONE_PUSH),
        "touched": ("a cancel takes what was changed later", _ONE_PUSH),
        "held back": ("a paused job runs", _ONE_PUSH),
        "rests while in flight": ("a paused job runs", _ONE_PUSH),
        "own time": ("a job waits for ever", _FOUR_ACTS),
        "a row goes": ("a payload is in two places", _ONE_PUSH),
        "still waits": ("an undo changes what has changed since", _ONE_PUSH),
        "failed since": ("an undo takes what has failed since", _PUSH_BETWEEN),
        "died since": ("an undo takes what a dead holder had", _PUSH_BETWEEN),
        "as it was seen": ("an edit undoes another one", _ONE_PUSH),
        "requests travel": ("a paused job runs", _ONE_PUSH),
    },
    frozenset(
        [
            *(
                "a push",
                "a holder comes",
                "for one payload",
                "finds nothing to do",
                "the lease is lost",
                "settles done",
            ),
            *("settles returned", "settles failed", "and it is cancelled", "too late", "looks", "cancels: done"),
            *("cancels: asked", "cancels: gone", "edits: waiting", "edits: runs", "edits: gone", "edits: changed"),
            *("a pause", "a resume", "a put", "a take", "a edit", "ran meanwhile", "the shard moves"),
        ]
    ),
)
MODELS: Final = (LEASE, MOVING, SPANS, LIMITS, WAITS, TENANTS, REQUESTS)
