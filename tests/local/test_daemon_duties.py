"""The thread of a daemon that runs duties."""

import threading

from lowkiq_lambda.declare.duty import VERIFY
from lowkiq_lambda.local.daemon import Daemon
from tests.kit.apps import MakeApp
from tests.kit.duties import Noted, with_queue
from tests.kit.servers import MakeServer
from tests.kit.waiting import eventually


def threads() -> set[str]:
    """The names of those that run duties."""
    return {thread.name for thread in threading.enumerate() if thread.name == "lowkiq-duties"}


def test_a_daemon_runs_a_duty_in_each_period(make_app: MakeApp, queue_name: str) -> None:
    """In a thread of its own, until it stops."""
    app = with_queue(make_app(), queue_name)
    duty = Noted(every=1.0)
    app.add_duty(duty)
    with Daemon(app):
        eventually(lambda: len(duty.runs) >= 2, timeout=10.0)
        assert {"lowkiq-duties"} == threads()
    eventually(lambda: not threads(), timeout=10.0)


def test_two_daemons_run_it_once(make_app: MakeApp, queue_name: str) -> None:
    """Whichever comes first."""
    apps = [with_queue(make_app(), queue_name) for _ in range(2)]
    duties = [Noted(every=3_600.0) for _ in apps]
    for app, duty in zip(apps, duties, strict=True):
        app.add_duty(duty)
    with Daemon(apps[0]), Daemon(apps[1]):
        eventually(lambda: any(duty.runs for duty in duties), timeout=10.0)
    assert 1 == sum(len(duty.runs) for duty in duties)


def test_a_daemon_without_duties_has_no_thread_for_them(make_app: MakeApp, queue_name: str) -> None:
    """Nothing is asked of Redis for them either."""
    app = with_queue(make_app(), queue_name)
    with Daemon(app) as daemon:
        daemon.quiet()
        assert set() == threads()


def test_a_daemon_verifies_its_queues_if_it_is_asked_to(make_app: MakeApp, queue_name: str) -> None:
    """In a thread of its own, which no other duty keeps waiting."""
    app = with_queue(make_app(verify=0.5), queue_name)
    with Daemon(app):
        eventually(lambda: app.operate.duties()[0].last_seconds is not None, timeout=20.0)
    (state,) = app.operate.duties()

    assert (VERIFY, None) == (state.name, state.last_error)
    assert app.operate(app.workers[0]).verified() is not None


def test_a_run_that_is_under_way_when_the_daemon_stops_has_no_time_left(make_app: MakeApp, queue_name: str) -> None:
    """So that it can end early; the daemon waits for it."""
    app = with_queue(make_app(), queue_name)
    began, seen = threading.Event(), list[float]()

    def last() -> None:
        began.set()
        eventually(lambda: duty.remaining() == 0.0, timeout=10.0)
        seen.append(duty.remaining())

    duty = Noted(act=last)
    app.add_duty(duty)
    with Daemon(app):
        assert began.wait(10.0)
        assert [] == seen
    assert [0.0] == seen


def test_duties_go_on_after_an_outage(make_app: MakeApp, make_server: MakeServer, queue_name: str) -> None:
    """The thread survives it."""
    server = make_server()
    app = with_queue(make_app(redis_url=server.url, redis_timeout=0.2), queue_name)
    duty = Noted(every=1.0)
    app.add_duty(duty)
    with Daemon(app):
        eventually(lambda: bool(duty.runs), timeout=10.0)
        server.kill()
        server.restart()
        before = len(duty.runs)
        eventually(lambda: len(duty.runs) > before + 1, timeout=20.0)
