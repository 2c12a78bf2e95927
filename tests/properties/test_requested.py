"""Cancel and pause of single ids against the ends of their runs, in any order."""

from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.properties.requested import IDS, Act, RequestedQueue

ACTS = st.tuples(
    st.sampled_from(["push", "cancel", "kill", "end", "pause", "resume", "fail", "fail", "die"]), st.sampled_from(IDS)
)
RUNS = st.lists(st.lists(ACTS, max_size=4), max_size=4)
STEPS = st.lists(
    st.tuples(st.lists(ACTS, min_size=1, max_size=4), RUNS, st.sampled_from([0, 5, 30, 61])), min_size=1, max_size=5
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(STEPS, st.sampled_from([None, "home"]))
def test_each_payload_is_done_or_cancelled_once(
    make_app: MakeApp, clock: ManualClock, steps: list[tuple[list[Act], list[list[Act]], int]], tenants: str | None
) -> None:
    """Whatever operators ask for before, while and after an id runs, fails or dies: none comes back or is lost.

    So with the cancel of the task that payloads are items of, and in a queue with tenants.
    """
    app = make_app()
    queue = RequestedQueue(app, clock, f"queue-{uuid4().hex}", tenants=tenants)
    for before, runs, seconds in steps:
        queue.act(before)
        queue.drain(runs)
        clock.advance(seconds)
    queue.end()
    close_app(app)
