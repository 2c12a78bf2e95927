"""Rows as objects of Django, in the order of keys of each type, on SQLite (J-31)."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lowkiq_lambda import BatchJob, CursorError, Worker
from lowkiq_lambda.iterate import chunks
from lowkiq_lambda.iterate import django as rows_of
from lowkiq_lambda.testing import run_through

if TYPE_CHECKING:
    from tests.contrib.site.shop.models import SiteVisit

pytestmark = pytest.mark.xdist_group("django")
AT = datetime(2026, 10, 25, 0, 30, 0, 1, tzinfo=UTC)


@pytest.fixture
def visits(site: ModuleType) -> Iterator[type["SiteVisit"]]:
    """Seven visits of two orders; each column but the order's tells them apart."""
    from tests.contrib.site.shop.models import SiteOrder, SiteVisit  # noqa: PLC0415 - once Django is set up

    assert site.app
    orders = [SiteOrder.objects.create(status=f"o{number}") for number in range(2)]
    for number in range(7):
        SiteVisit.objects.create(
            uid=UUID(int=(number * 3 % 7) << 64),
            number=number,
            at=AT + timedelta(microseconds=number),
            day=date(2026, 1, 1 + number),
            price=Decimal(number) / 4,
            content=bytes([9 - number]),
            order=orders[number % 2],
        )
    yield SiteVisit
    SiteVisit.objects.all().delete()


def interrupted(loop_of: Any, every: int = 1) -> list[Any]:
    """The items of a job that is stopped after each `every` items; its cursors are kept as a drain keeps them."""
    done: list[Any] = []

    class Iterating(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            for item, cursor in job.follow(loop_of(after=job.cursor)):
                done.append(item)
                yield cursor

    run_through(Iterating, [], every=every)
    return done


@pytest.mark.parametrize("by", ["pk", "number", "at", "day", "price", "content", ("order", "number"), ("day", "uid")])
def test_an_interrupted_queryset_has_each_object_once(visits: Any, by: Any) -> None:
    """UUIDs, times with microseconds, days, decimals, bytes, several columns: whatever `Meta.ordering` says."""
    fields = [by] if isinstance(by, str) else [*by]

    done = [interrupted(partial(rows_of, visits.objects.all(), by, size=size), 2) for size in (1, 3, 500)]

    assert [list(visits.objects.order_by(*fields))] * 3 == done
    assert not any("keyset_same" in vars(visit) for visit in done[0])


def test_conditions_joins_and_loaded_relations_stay(visits: Any) -> None:
    """J-31: names of columns have their tables, and the orders come in the same statement."""
    queryset = visits.objects.filter(order__status="o1").select_related("order").only("number", "order__status")

    with CaptureQueriesContext(connection) as queries:
        done = [(visit.number, visit.order.status) for visit, _ in rows_of(queryset, "number", size=2)]

    assert [(1, "o1"), (3, "o1"), (5, "o1")] == done
    # Two pages, and a look behind the last row.
    assert 3 == len(queries)


def test_a_join_that_repeats_a_key_is_refused(visits: Any) -> None:
    """An order comes once for each of its visits."""
    from tests.contrib.site.shop.models import SiteOrder  # noqa: PLC0415 - once Django is set up

    assert visits
    with pytest.raises(ValueError, match=r"two rows have .* in id: add a column that tells them apart"):
        next(rows_of(SiteOrder.objects.filter(visits__number__gte=0), size=1))
    assert 2 == len(list(rows_of(SiteOrder.objects.filter(visits__number__gte=0).distinct())))


@pytest.mark.parametrize(
    ("change", "by", "why"),
    [
        (lambda rows: rows[:5], "pk", "not sliced"),
        (lambda rows: rows.order_by("day"), "pk", "without order_by"),
        (lambda rows: rows.union(rows), "pk", "no union"),
        (lambda rows: rows.values("number"), "number", r"not of values\(\)"),
        (lambda rows: rows, "nope", "SiteVisit has no field 'nope'"),
        (lambda rows: rows, "order__status", "SiteVisit has no field 'order__status'"),
        (lambda rows: rows, (), "by names at least one field"),
    ],
)
def test_a_queryset_that_cannot_be_divided_into_pages_is_refused(visits: Any, change: Any, by: Any, why: str) -> None:
    """Before the database is asked."""
    with CaptureQueriesContext(connection) as queries, pytest.raises(ValueError, match=why):
        rows_of(change(visits.objects.all()), by)

    assert 0 == len(queries)


def test_columns_that_may_be_null_or_are_none_are_refused(visits: Any) -> None:
    """A row without a value has no place in the order."""
    from tests.contrib.site.shop.models import SiteOrder  # noqa: PLC0415 - once Django is set up

    assert visits
    with pytest.raises(ValueError, match="'parent' may be NULL"):
        rows_of(SiteOrder.objects.all(), ("parent", "id"))
    with pytest.raises(ValueError, match="'visits' is not a column of SiteOrder"):
        rows_of(SiteOrder.objects.all(), "visits")


def test_until_and_counts(visits: Any) -> None:
    """One COUNT in the first run of a job, of the rows of its range."""
    loop = rows_of(visits.objects.all(), "number", [1], until=[4], size=2)

    assert 3 == loop.total
    assert [2, 3, 4] == [visit.number for visit, _ in loop]
    assert 4 == chunks(rows_of(visits.objects.all(), "number"), 2).total
    with CaptureQueriesContext(connection) as queries:
        assert 7 == len(interrupted(lambda after: rows_of(visits.objects.all(), after=after, count=False), 7))
    assert not [query for query in queries.captured_queries if "COUNT" in query["sql"]]


def test_a_cursor_of_another_queryset_is_refused(visits: Any) -> None:
    """As that of `keyset`."""
    with pytest.raises(CursorError, match="it must be a list with a value for each of uid"):
        rows_of(visits.objects.all(), after=[1, 2])
    with pytest.raises(CursorError, match="number is a int in the rows"):
        next(rows_of(visits.objects.all(), "number", ["3"]))
