"""Actions in steps: what each step says of how far it is."""

import pytest

from lowkiq_lambda.operate.acts.bulk_actions import WholeListError, count, prepare, steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from tests.kit.desk import Desk


def progress(desk: Desk, sweep: BulkAction) -> list[tuple[int, int]]:
    """How many ids were looked at, and changed, after each call."""
    return [(at.handled, at.changed) for at in steps(desk.queue.runner, sweep)]


def test_what_a_call_changed_it_has_finished(desk: Desk) -> None:
    """Each call that changes ids counts them as looked at, too, and no other call is made for them."""
    desk.kill([{"id": n} for n in range(1_200)])
    sweep = prepare(desk.queue.runner, "requeue")

    told = progress(desk, sweep)

    assert 1_200 == sweep.total
    assert [0, 500, 500, 1_000, 1_000, 1_200, 1_200] == [handled for handled, _ in told]
    assert all(handled == changed for handled, changed in told)


def test_an_id_that_is_half_done_was_looked_at(desk: Desk) -> None:
    """However many calls an id takes, it counts once, from the first of them on."""
    desk.push([{"id": job_id, "payload": n} for n in range(2_500) for job_id in ("large", "other")])
    told = progress(desk, prepare(desk.queue.runner, "delete", chosen_ids=["large", "other"]))

    assert told == sorted(told)
    assert (1, 1) in told
    assert all(changed <= handled <= 2 for handled, changed in told)
    assert (2, 2) == told[-1]


@pytest.mark.parametrize(
    ("wanted", "found"), [(IdFilter(prefix="a"), ["a1"]), (IdFilter(least_count="-1"), ["a1", "b1"])]
)
def test_only_what_has_failed_is_counted_where_only_that_is_meant(
    desk: Desk, wanted: IdFilter, found: list[str]
) -> None:
    """Who is asked is told how many ids will be changed."""
    desk.fail([{"id": "a1"}, {"id": "b1"}])
    desk.push([{"id": "a2"}, {"id": "b2"}])
    sweep = prepare(desk.queue.runner, "kill", filter=wanted)

    assert (len(found), True) == count(desk.queue.runner, sweep, lambda: True)
    assert len(found) == progress(desk, sweep)[-1][1]
    assert found == sorted(desk.state()["morgue"])


def test_bounds_of_a_retry_count_are_read_as_others_are(desk: Desk) -> None:
    """As Redis writes them: in no way of writing does a bound become none."""
    desk.fail([{"id": "failed"}])
    desk.push([{"id": "fresh"}])
    for bound, found in (("+", 0), ("+inf", 0), ("[0", 1), ("(0", 0), ("(-1", 1), ("-", 2), ("-inf", 2), ("1e0", 0)):
        sweep = prepare(desk.queue.runner, "delete", filter=IdFilter(least_count=bound), whole_list=True)
        assert (found, True) == count(desk.queue.runner, sweep, lambda: True), bound


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"least": "-inf", "most": "+inf"},
        {"least_count": "-", "most_count": "+inf"},
        {"least_id": "[", "most_id": "("},
        {"prefix": "", "error": ""},
    ],
)
def test_a_filter_that_finds_everything_is_none(desk: Desk, fields: dict[str, str]) -> None:
    """However it is written: all waiting jobs, failed or not, are deleted only where somebody asks for all."""
    desk.push([{"id": "a"}])
    with pytest.raises(WholeListError):
        prepare(desk.queue.runner, "delete", filter=IdFilter(**fields))
    assert 1 == prepare(desk.queue.runner, "delete", filter=IdFilter(**fields), whole_list=True).total
    assert 1 == prepare(desk.queue.runner, "delete", filter=IdFilter(**{**fields, "prefix": "b"})).total
