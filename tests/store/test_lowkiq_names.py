"""Lowkiq's names of `Queue::Queries` and `Queue::Actions`: a closed list, each as in Lowkiq (docs/lowkiq-names.md)."""

import inspect
import re
from pathlib import Path

from lowkiq_lambda.operate.lowkiq_names import Actions, Queries
from tests.kit.desk import Desk
from tests.kit.looks import ids_of

PAGE = Path(__file__).parents[2] / "docs" / "lowkiq-names.md"


def names(owner: type) -> set[str]:
    """The public methods."""
    return {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}


def test_the_page_has_each_name_and_no_other() -> None:
    """Nothing is promised that is not there, and nothing is there that the page does not name."""
    page = PAGE.read_text()

    assert names(Queries) == set(re.findall(r"`queries\.(\w+)\(", page))
    assert names(Actions) == set(re.findall(r"`actions\.(\w+)\(", page))


def test_each_range_goes_both_ways(desk: Desk) -> None:
    """LN-22, LN-23: by id, time and retry_count; a `rev_` range has its upper bound first."""
    desk.kill([{"id": job_id} for job_id in ("x", "y", "z")])
    desk.fail([{"id": job_id} for job_id in "ab"])
    desk.push([{"id": "c", "delay": 600.0}])
    queries, now = desk.app.operate.queries(desk.worker), desk.clock.time()

    assert ["b", "c"] == ids_of(queries.range_by_id("b", "+"))
    assert ["b", "a"] == ids_of(queries.rev_range_by_id("b", "-"))
    assert ["a", "b"] == ids_of(queries.range_by_perform_in(now, now + 500.0))
    assert ["c", "b", "a"] == ids_of(queries.rev_range_by_perform_in("+inf", now))
    assert ["c"] == ids_of(queries.range_by_retry_count("-inf", -1))
    assert ["b", "a"] == ids_of(queries.rev_range_by_retry_count("+inf", 0))
    assert ["y", "z"] == ids_of(queries.morgue_range_by_id("(x"))
    assert ["z", "y"] == ids_of(queries.morgue_rev_range_by_id("+", "(x"))
    assert ["x", "y", "z"] == ids_of(queries.morgue_range_by_updated_at("-inf", now))
    assert ["z", "y", "x"] == ids_of(queries.morgue_rev_range_by_updated_at(now))
    assert (["c"], ["y"]) == (ids_of(queries.fetch(["c", "y"])), ids_of(queries.morgue_fetch(["c", "y"])))


def test_a_range_has_ten_jobs_unless_more_are_asked_for(desk: Desk) -> None:
    """As in Lowkiq."""
    desk.push([{"id": number} for number in range(12)])
    queries = desk.app.operate.queries(desk.worker)

    assert (10, 12) == (len(queries.range_by_id()), len(queries.range_by_id(limit=20)))


def test_each_act_is_on_all_jobs_of_its_kind(desk: Desk) -> None:
    """LN-25, LN-26: and each returns how many ids it changed."""
    desk.kill([{"id": job_id} for job_id in "wxyz"])
    desk.fail([{"id": job_id} for job_id in "ab"])
    desk.push([{"id": "later", "delay": 600.0}])
    actions = desk.app.operate.actions(desk.worker)

    assert 1 == actions.morgue_queue_up(["w", "unknown"])
    assert 1 == actions.morgue_delete(["x", "w"])
    assert 2 == actions.kill_all_failed_jobs()
    assert 4 == actions.morgue_queue_up_all_jobs()
    assert 1 == actions.perform_all_jobs_now()
    desk.fail([{"id": "c"}])
    assert 1 == actions.delete_all_failed_jobs()
    desk.kill([{"id": "d"}])
    assert 1 == actions.morgue_delete_all_jobs()
    assert (0, 0) == (desk.queue.morgue.count(), desk.queue.waiting.count({"least_count": "0"}))
