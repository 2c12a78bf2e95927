"""Plans: their text, and what replays them after the code has changed."""

from collections.abc import Collection
from enum import Enum
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import pytest

from lowkiq_lambda import ConfigError, Worker
from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.classes import Classifier
from lowkiq_lambda.testing.fuzz.found import Shrinking
from lowkiq_lambda.testing.fuzz.observed import Observed
from lowkiq_lambda.testing.fuzz.oracle import Difference
from lowkiq_lambda.testing.fuzz.plan import (
    KINDS,
    DrainStep,
    Fault,
    FaultKind,
    Plan,
    PushStep,
    ThawStep,
    compact,
    faults_of,
    plan_of,
    plan_text,
    pushes_of,
)
from lowkiq_lambda.testing.fuzz.pool import PayloadPool, payloads_of
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of
from tests.fuzz.payloads import STATUSES, Status


class Urgency(Enum):
    """An enum."""

    LOW = "low"
    HIGH = "high"


class PlaceOfDelivery(TypedDict):
    """A typed dict."""

    city: str
    level: NotRequired[Urgency]


PLAN: Plan = (
    PushStep("1", 0, 1.0),
    DrainStep(Fault("freeze", 0, "shop.py:SyncOrder.perform+4#1")),
    PushStep("1", 2, 9.0),
    DrainStep(Fault("after_handler", 1)),
    DrainStep(),
    ThawStep(),
)
TEXT = (
    '[["push","1",{"status":"new"},1.0],["drain","freeze",0,"shop.py:SyncOrder.perform+4#1"],'
    '["push","1",{"status":"sent"},9.0],["drain","after_handler",1],["drain"],["thaw"]]'
)


def test_a_plan_has_one_text() -> None:
    """With its payloads, so that it means the same when others are fuzzed."""
    assert TEXT == plan_text(PLAN, PayloadPool(Status, STATUSES))
    assert PLAN == plan_of(TEXT, PayloadPool(Status, STATUSES))


def test_a_payload_that_is_new_joins_the_pool() -> None:
    """The payloads of a test may change: its plan does not."""
    pool = PayloadPool(Status, [Status("paid")])

    assert [1, 2] == [push.payload for push in pushes_of(plan_of(TEXT, pool))]
    assert [Status("paid"), Status("new"), Status("sent")] == [*pool.payloads]


@pytest.mark.parametrize("kind", [Status, PlaceOfDelivery, Urgency, Annotated[int, msgspec.Meta(ge=0)], list[str]])
def test_payloads_are_made_from_a_type(kind: Any) -> None:
    """A few, the shortest first, and the same each time; all of them can be pushed."""
    worker = type("Typed", (Worker,), {"payload": kind})
    payloads = payloads_of(worker)
    pool = PayloadPool(kind, payloads)

    assert payloads == payloads_of(worker)
    assert 1 <= len(payloads) <= 6
    assert [*range(len(pool))] == [pool.position_of(pool.plain(position)) for position in range(len(pool))]


def test_payloads_without_a_type_are_to_be_given() -> None:
    """There is nothing to make them from."""
    with pytest.raises(ConfigError, match="declares no type of payloads: give payloads="):
        payloads_of(type("Untyped", (Worker,), {}))


def test_compact_scores_keep_their_order() -> None:
    """A story with versions 1 and 2 reads better than one with 1 and 9."""
    assert [1.0, 2.0] == [push.score for push in pushes_of(compact(PLAN))]


def test_a_line_that_is_gone_has_the_others_in_its_place(lowkiq: AppUnderTest) -> None:
    """Code around it may change: the test goes on to find what it found."""
    report = fuzz(lowkiq.app, lowkiq.clock, planted.ReadThenWrite, options_of("ReadThenWrite", plan=PLAN_OF_ANOTHER))

    assert ["two holders"] == [one.fault_class for one in report.findings]
    assert ["the line of the plan is gone, so each line was tried in its place."] == report.left_out


PLAN_OF_ANOTHER = (
    '[["push","1",{"status":"new"},1.0],["drain","freeze",0,"planted.py:ReadThenWrite.before+1"],'
    '["push","1",{"status":"sent"},2.0],["drain"]]'
)


def test_a_mended_handler_passes_the_plan_of_its_fault(lowkiq: AppUnderTest) -> None:
    """As the test that was pasted when it was found."""
    plan = PLAN_OF_ANOTHER.replace("ReadThenWrite.before", "LastWinsMended.perform")

    report = lowkiq.fuzz(planted.LastWinsMended, **options_of("LastWinsMended", plan=plan))

    assert [] == report.findings
    assert str(report).startswith("LastWinsMended: mended: the plan finds no difference any more\n")


@pytest.mark.parametrize("fault", ["die", "fail", "before_handler", "after_handler", "after_settle_sent"])
def test_each_fault_happens(lowkiq: AppUnderTest, fault: str) -> None:
    """A plan with it calls the handler again, unless Redis has its outcome, or the handler had not begun."""
    where = ',"planted.py:PagesMended.perform_job+2"' if fault in ("die", "fail") else ""
    plan = f'[["push","1",{{"status":"new"}},1.0],["drain","{fault}",0{where}]]'

    report = lowkiq.fuzz(planted.PagesMended, **options_of("PagesMended", plan=plan))

    assert {fault: 1} == dict(report.faults)


def _difference(fault_class: str, state: object = None) -> Difference:
    return Difference(fault_class, "", "", Observed(state=state))


def _shrunk(plan: Plan, judge: Any, fault_class: str, kinds: Collection[FaultKind] = KINDS) -> Plan:
    shrinking = Shrinking(judge, plan, _difference(fault_class), "1", kinds)
    shrinking.run()
    return shrinking.plan


def test_a_plan_shrinks_to_what_it_needs() -> None:
    """Steps, faults, ids, payloads and points that change nothing go."""
    plan: Plan = (
        PushStep("3", 2, 4.0),
        DrainStep(Fault("die", 0, 9)),
        PushStep("2", 1, 7.0),
        DrainStep(Fault("fail", 0, 2)),
        ThawStep(),
        DrainStep(),
    )

    def judge(candidate: Plan) -> Difference | None:
        points = [fault.point for fault in faults_of(candidate) if fault.kind == "die"]
        if not isinstance(candidate[0], PushStep):
            return None
        return _difference("repeat") if any(isinstance(point, int) and point >= 4 for point in points) else None

    assert (PushStep("1", 0, 1.0), DrainStep(Fault("die", 0, 4))) == _shrunk(plan, judge, "repeat")


FROZEN: Plan = (PushStep("1", 0, 1.0), DrainStep(Fault("freeze", 0, 0)), DrainStep(), ThawStep())


def test_a_plan_stays_in_its_class() -> None:
    """A finding of another class is another finding."""

    def judge(candidate: Plan) -> Difference | None:
        kinds = [fault.kind for fault in faults_of(candidate)]
        if not kinds:
            return _difference("morgue")
        return _difference("two holders" if "freeze" in kinds else "repeat")

    assert ["freeze"] == [fault.kind for fault in faults_of(_shrunk(FROZEN, judge, "two holders"))]


@pytest.mark.parametrize(("kinds", "kind"), [(KINDS, "die"), (["freeze", "after_handler"], "after_handler")])
def test_a_death_shows_more_plainly_what_a_freeze_shows(kinds: Collection[FaultKind], kind: FaultKind) -> None:
    """In a class that any fault may show, and by the kinds of faults that the fuzz may have."""

    def judge(candidate: Plan) -> Difference | None:
        return _difference("effect mail") if faults_of(candidate) else None

    assert [kind] == [fault.kind for fault in faults_of(_shrunk(FROZEN, judge, "effect mail", kinds))]
    assert ["freeze"] == [fault.kind for fault in faults_of(_shrunk(FROZEN, judge, "effect mail", ["freeze"]))]


@pytest.mark.parametrize(
    ("kinds", "ends", "fault_class"),
    [
        (KINDS, {"freeze": 10, "die": 10}, "repeat"),
        (KINDS, {"freeze": 10, "after_handler": 10}, "repeat"),
        (KINDS, {"freeze": 10, "die": 8}, "two holders"),
        (KINDS, {"freeze": 10}, "two holders"),
        (KINDS, {"freeze": 10, "": 10}, "batch"),
        (["freeze"], {"freeze": 10, "die": 10}, "two holders"),
    ],
)
def test_a_class_is_that_of_the_simplest_scenario_with_the_same_end(
    kinds: Collection[FaultKind], ends: dict[str, int], fault_class: str
) -> None:
    """Of those with the faults that the fuzz may have."""
    by_kind = {"freeze": "two holders", "": "batch"}

    def judge(candidate: Plan) -> Difference | None:
        kind = next((fault.kind for fault in faults_of(candidate)), "")
        return _difference(by_kind.get(kind, "repeat"), ends[kind]) if kind in ends else None

    difference = Classifier(judge, kinds).judge(FROZEN)

    assert difference is not None
    assert fault_class == difference.fault_class
