"""The conditions of a list, each as a chip that leads to the same list without it."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.criteria import Criterion, criteria
from lowkiq_lambda.dashboard.pages.actions_search import filter_of
from lowkiq_lambda.dashboard.pages.filters import ListQuery
from lowkiq_lambda.operate.inspect.action_scripts import ActionName
from lowkiq_lambda.operate.inspect.id_ranges import SearchableList

_ACTIONS: Final[Mapping[SearchableList, ActionName]] = {"waiting": "delete", "morgue": "requeue"}
"""An action on each list, whose confirmation has the words."""


class Chip(msgspec.Struct, frozen=True):
    """A condition, and the list without it."""

    criterion: Criterion
    link: str


def chips_of(context: RequestContext, queue: str, path: SearchableList, query: ListQuery) -> list[Chip]:
    """A chip for each condition, in the words of the confirmation. Raises ValueError for an invalid value."""
    return [
        Chip(criterion, context.link(path, queue=queue, **without.fields()))
        for alone, without in _parts(query)
        for criterion in criteria(filter_of(alone), _ACTIONS[path])
    ]


def _parts(query: ListQuery) -> Iterator[tuple[ListQuery, ListQuery]]:
    """The query with one of its conditions alone, and without it."""
    search = {"find": query.find, "text": query.text, "fingerprint": query.fingerprint}
    free = msgspec.structs.replace(query, range="desc" if query.reverse else "asc", value="")
    bare = msgspec.structs.replace(free, **dict.fromkeys(search, ""))
    for name, value in search.items():
        if value:
            yield msgspec.structs.replace(bare, **{name: value}), msgspec.structs.replace(query, **{name: ""})
    if query.has_range:
        yield msgspec.structs.replace(query, **dict.fromkeys(search, "")), free
