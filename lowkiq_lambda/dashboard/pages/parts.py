"""Parts that pages share: the queue in the address, links to exports, and tables that are sorted."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.declare.worker import Worker

PAGE: Final = 100
"""Jobs on one page of a list."""

Row = TypeVar("Row")
Columns = Mapping[str, Callable[[Row], Any]]
"""The value to sort by, by the name of its column."""
BY_TEXT: Final = frozenset({"name", "index", "owner"})
"""Columns that people read upwards; of all others the largest value comes first."""


def chosen_worker(context: RequestContext) -> type[Worker[Any]] | None:
    """The worker of the queue in the address; None if the app has no such queue."""
    return context.worker_named(context.query.get("queue", ""))


def export_links(context: RequestContext, queue: str, listed: str, **fields: str) -> dict[str, str]:
    """Links to files of a list, by the name of their format."""
    query = {"queue": queue, "list": listed, **fields}
    return {name.upper(): context.link("export", **query, format=name) for name in ("csv", "json")}


def no_queue(context: RequestContext) -> Response:
    """The response if the address does not name a queue of the app."""
    return context.refuse(404, NO_QUEUE)


class Head(msgspec.Struct, frozen=True):
    """The head of a column. `link`: to the same table, sorted by it; None where it cannot be. `sorted`: aria-sort."""

    link: str | None
    sorted: str

    @classmethod
    def of(cls, link: str | None, *, is_here: bool, reverse: bool) -> "Head":
        """The head, given whether the table is sorted by it now."""
        return cls(link, ("descending" if reverse else "ascending") if is_here else "none")


class Sort(msgspec.Struct, frozen=True):
    """By which column a table is sorted; empty: by none."""

    by: str = ""
    reverse: bool = False

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an address."""
        return {"sort": self.by, "way": "desc" if self.reverse else "asc"} if self.by else {}

    def rows(self, rows: list[Row], columns: "Columns[Row]") -> list[Row]:
        """The rows in order; those with equal values stay as they were."""
        return sorted(rows, key=columns[self.by], reverse=self.reverse) if self.by else rows

    def heads(self, context: RequestContext, path: str, columns: "Columns[Row]", **query: object) -> dict[str, Head]:
        """The head of each column."""
        heads = dict[str, Head]()
        for name in columns:
            is_here = name == self.by
            reverse = not self.reverse if is_here else name not in BY_TEXT
            link = context.link(path, **query, **Sort(name, reverse).fields)
            heads[name] = Head.of(link, is_here=is_here, reverse=self.reverse)
        return heads


def sort_of(query: Mapping[str, str], columns: "Columns[Any]") -> Sort:
    """The order in an address; none by default, and for an unknown column."""
    by = query.get("sort", "")
    return Sort(by, query.get("way") == "desc") if by in columns else Sort()
