"""What follows from a violation that housekeeping finds: a pause, if the app says so, and an answer of the API."""

import math
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.verify.duty import VerifyDuty
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, READER
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

OnViolation: TypeAlias = Literal["report", "pause"]


def run_on(app: Lowkiq, clock: ManualClock, minutes: int) -> None:
    """The duty, once a minute."""
    for _ in range(minutes):
        clock.advance(60.0)
        VerifyDuty(app.core).run(lambda: math.inf)


def lose(app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock) -> None:
    """A payload of two goes, behind the engine's back, while its shard is recorded; and the duty judges that."""
    while not VerifyDuty(app.core).run(lambda: math.inf)["drawn"]:
        clock.advance(60.0)
    worker.push_many(jobs_of("ab"))
    (shard,) = app.operate(worker).reader.shards
    app.core.backend.client.hdel(shard.key("jobs"), "a")
    app.core.backend.client.zrem(shard.key("due"), "a")
    run_on(app, clock, 1)


def is_paused(app: Lowkiq, worker: type[Worker[Any]]) -> bool:
    """Whether nobody drains the only shard of the worker's queue."""
    (shard,) = app.operate(worker).shards()
    return shard.is_paused


def answer_of(app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock) -> Any:
    """What the API says of the verification of the queue."""
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))
    browser.come_in(AUTH, READER, clock.time())
    return browser.get(f"/api/v1/verified?{urlencode({'queue': worker.queue_name})}").json


@pytest.mark.parametrize("on_violation", ["report", "pause"])
def test_a_violation_pauses_its_queue_if_the_app_says_so(
    make_app: MakeApp, clock: ManualClock, queue_name: str, on_violation: OnViolation
) -> None:
    """That queue and no other, until an operator resumes it: the same violation pauses it once."""
    app = make_app(verify=1.0, on_violation=on_violation)
    worker, other = (declare(app, f"{queue_name}{end}", Notes()) for end in ("", "-other"))
    app.core.queues.agreed(other)
    lose(app, worker, clock)

    pauses = on_violation == "pause"
    assert (pauses, False) == (is_paused(app, worker), is_paused(app, other))
    app.operate(worker).resume()
    run_on(app, clock, 3)
    assert not is_paused(app, worker)


def test_what_went_well_pauses_nothing(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Though a violation would."""
    app = make_app(verify=1.0, on_violation="pause")
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("abc"))
    app.drain()
    run_on(app, clock, 8)

    assert not is_paused(app, worker)


def test_the_api_has_the_last_verdict(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Nothing before the first run; then what was judged, and what was violated until somebody acknowledges it."""
    app = make_app(verify=1.0)
    worker = declare(app, queue_name, Notes())
    app.core.queues.agreed(worker)
    answers = [answer_of(app, worker, clock)]
    lose(app, worker, clock)
    answers.append(answer_of(app, worker, clock))
    app.operate(worker).acknowledge_violations()
    answers.append(answer_of(app, worker, clock))

    verdicts = [answer["verified"] for answer in answers]
    assert [queue_name] * 3 == [answer["queue"] for answer in answers]
    assert [None, 1, 0] == [verdict and verdict["found"] for verdict in verdicts]
    assert [("account", "a")] == [(one["rule"], one["id"]) for one in verdicts[1]["violations"]]
    assert [] == verdicts[2]["violations"]
    assert verdicts[1]["looked_at"] == clock.time()
