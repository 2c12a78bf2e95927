"""What somebody tests with the fixture."""

import asyncio
from typing import Literal

import pytest
from shop import StatusChanged, SyncOrder, app, orders, ping, pings

from lowkiq_lambda.testing import AppUnderTest, AppWithDaemon, FakeApp, JobFailed


def test_a_late_change_goes_first_and_survives_a_crash(lowkiq: AppUnderTest) -> None:
    """In order of the scores; the next process has it again."""
    SyncOrder.push(1, StatusChanged("paid"), score=2)
    SyncOrder.push(1, StatusChanged("new"), score=1)
    lowkiq.assert_pushed(SyncOrder, id=1, count=2)
    lowkiq.assert_order(SyncOrder, 1, [StatusChanged("new"), StatusChanged("paid")])

    with lowkiq.crash_after(SyncOrder):
        died = lowkiq.drain()
    result = lowkiq.drain()

    assert [] == died.done
    assert died.calls == result.calls == [("1", [StatusChanged("new"), StatusChanged("paid")])]
    assert (["1"], ["1"], "paid") == (result.recovered, result.done, orders["1"])
    lowkiq.advance(minutes=5)
    lowkiq.assert_empty(SyncOrder)


@pytest.mark.parametrize(
    ("point", "died", "after"),
    [("before_handler", 0, 1), ("after_handler", 1, 1), ("after_settle_sent", 1, 0)],
)
def test_a_process_dies_where_it_is_told_to(
    lowkiq: AppUnderTest,
    point: Literal["before_handler", "after_handler", "after_settle_sent"],
    died: int,
    after: int,
) -> None:
    """How often the handler runs, before and after; nothing is left of the tests before."""
    lowkiq.assert_empty()
    SyncOrder.push(1, StatusChanged("paid"))

    with lowkiq.crash_after(SyncOrder, point):
        calls = lowkiq.drain().calls

    assert (died, after) == (len(calls), len(lowkiq.drain().calls))
    lowkiq.assert_empty()


def test_a_crash_within_another_ends_where_it_ends(lowkiq: AppUnderTest) -> None:
    """Behind the inner block the outer one counts again."""
    SyncOrder.push(1, StatusChanged("paid"))

    with lowkiq.crash_after(SyncOrder, "before_handler"):
        with lowkiq.crash_after(SyncOrder):
            inner = lowkiq.drain().calls
        outer = lowkiq.drain().calls

    assert (1, 0, True) == (len(inner), len(outer), "1" in lowkiq.drain().done)


def test_everything_comes_twice(lowkiq: AppUnderTest) -> None:
    """For handlers that must be idempotent."""
    ping.push_many([{"id": "a"}, {"id": "b"}])

    assert ["a", "b"] == sorted(lowkiq.deliver_twice(ping).recovered)


def test_a_mark_fails_the_test_and_is_retried_and_dead(lowkiq: AppUnderTest) -> None:
    """Unless the test says that it expects it."""
    SyncOrder.push(1, StatusChanged("bad"))
    with pytest.raises(JobFailed, match="SyncOrder, id '1', failed: a bad status"):
        lowkiq.drain()

    assert [] == lowkiq.drain(raises=False).retried
    lowkiq.advance(seconds=61)

    assert ["1"] == lowkiq.drain(raises=False).dead
    lowkiq.assert_dead(SyncOrder, id=1, error="bad")
    lowkiq.assert_not_pushed(SyncOrder)


def test_what_a_handler_raises_is_raised_again(lowkiq: AppUnderTest) -> None:
    """The very error, when all else is done."""
    SyncOrder.push(1, StatusChanged("boom"))
    SyncOrder.push(2, StatusChanged("paid"))

    with pytest.raises(RuntimeError, match="boom"):
        lowkiq.drain()

    assert "paid" == orders["2"]


def test_assertions_say_what_there_is(lowkiq: AppUnderTest) -> None:
    """Who reads only the failure knows more."""
    SyncOrder.push(1, StatusChanged("paid"))

    with pytest.raises(AssertionError) as pushed:
        lowkiq.assert_pushed(SyncOrder, id=1, count=2)
    with pytest.raises(AssertionError) as empty:
        lowkiq.assert_empty()
    with pytest.raises(AssertionError) as dead:
        lowkiq.assert_dead(SyncOrder, id=1)
    with pytest.raises(AssertionError) as order:
        lowkiq.assert_order(SyncOrder, 1, [StatusChanged("new")])

    found = "'1': [{'status': 'paid'}]"
    assert f"SyncOrder, id 1: expected 2 waiting payloads, found {found}" == str(pushed.value)
    assert f"SyncOrder: expected 0 waiting payloads, found {found}" == str(empty.value)
    assert f"SyncOrder, id 1: expected a job in the morgue, found none there; what waits: {found}" == str(dead.value)
    assert str(order.value).endswith("expected [StatusChanged(status='new')], found [StatusChanged(status='paid')]")


def test_an_entry_fires_when_its_time_has_come(lowkiq: AppUnderTest) -> None:
    """The first look notes it, and from then on its times count."""
    assert [] == lowkiq.drain().done
    lowkiq.advance(seconds=61)

    assert ["tick"] == lowkiq.drain().done
    assert "tick" == pings[-1]


def test_a_coroutine_drains_beside_its_loop(lowkiq: AppUnderTest) -> None:
    """As pytest-asyncio and anyio run tests."""
    ping.push("a")

    assert ["a"] == asyncio.run(lowkiq.adrain()).done


@pytest.mark.lowkiq(app="shop:app")
def test_a_mark_names_the_app(lowkiq: AppUnderTest) -> None:
    """It counts before what the project says."""
    assert app is lowkiq.app


def test_more_than_a_page_is_counted(lowkiq: AppUnderTest) -> None:
    """No assertion looks at a part alone."""
    SyncOrder.push_many([{"id": number, "payload": StatusChanged("paid")} for number in range(1_500)])

    lowkiq.assert_pushed(SyncOrder, count=1_500)
    assert 1_500 == len(lowkiq.drain().done)


@pytest.fixture
def anyio_backend() -> str:
    """The loop that coroutines of tests run on."""
    return "asyncio"


@pytest.mark.anyio
async def test_a_plugin_runs_coroutines(lowkiq: AppUnderTest) -> None:
    """Pushes, drains and claims in a test that is a coroutine."""
    await ping.apush("a")
    lowkiq.assert_pushed(ping, id="a")

    assert ["a"] == (await lowkiq.adrain()).done


def test_pushes_perform(lowkiq_inline: AppUnderTest) -> None:
    """With the fixture that drains after each push."""
    SyncOrder.push("inline", StatusChanged("paid"))

    assert "paid" == orders["inline"]
    lowkiq_inline.assert_empty()


def test_pushes_without_a_server(lowkiq_fake: FakeApp) -> None:
    """Payloads are as handlers would get them."""
    SyncOrder.push(1, StatusChanged("paid"), score=3)

    lowkiq_fake.assert_pushed(SyncOrder, id=1, count=1)
    (pushed,) = lowkiq_fake.pushed(SyncOrder)
    assert (StatusChanged("paid"), 3) == (pushed.payload, pushed.score)


def test_a_daemon_performs(lowkiq_daemon: AppWithDaemon) -> None:
    """In real time."""
    SyncOrder.push("daemon", StatusChanged("paid"))

    assert ["daemon"] == lowkiq_daemon.wait(30).done
    assert "paid" == orders["daemon"]
