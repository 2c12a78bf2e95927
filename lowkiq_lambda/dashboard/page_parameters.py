"""The parameters in the address of a page: a page refuses those that it does not know, as the API does.

One that was left out without a word would widen a list, and the actions on all of it.
"""

from collections.abc import Collection, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, get_args

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import Handler, RequestContext
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.views.queues import Span, TenantOrder

_WORDS: Final[Mapping[str, str]] = {
    "after": "the end of the page before",
    "back": "the page to go back to",
    "by": "the order, or the kind of groups",
    "do": "an action",
    "find": "the beginning of an id, or of a name",
    "fingerprint": "the fingerprint of the last error, 16 hex digits",
    "format": "csv or json",
    "id": "an id",
    "ids": "ids in a window",
    "item": "the number of an item",
    "length": "a duration, such as 90m",
    "list": "waiting, morgue or processing",
    "name": "the name of an entry",
    "names": "the names of entries",
    "next": "the page to go to",
    "order": "turn or waiting",
    "per": "seconds of a window",
    "places": "places of a limit",
    "q": "a text, or a request that the dashboard has packed",
    "queue": "the name of a queue",
    "range": "asc, desc, gte or lte",
    "seconds": "the seconds of a pause",
    "sort": "the column to sort by",
    "span": "the span of the charts",
    "status": "the state of items",
    "task": "the id of a task",
    "tenant": "the name of a tenant",
    "text": "a text in the last error",
    "value": "the bound of the range",
    "way": "asc or desc",
}
_SEVERAL: Final = frozenset({"names"})
"""Parameters that a page may be given several times."""
_VALUES: Final[Mapping[str, Collection[str]]] = {
    "order": get_args(TenantOrder),
    "span": get_args(Span),
    "way": ("asc", "desc"),
}
"""Those of parameters that mean the same on each page that has them; of the others the page knows."""


def knowing(names: str, handler: Handler) -> Handler:
    """The handler of a page whose address has these parameters, names with spaces between them, each at most once."""
    return partial(_checked, {name: _WORDS[name] for name in names.split()}, handler)


def _checked(known: Mapping[str, str], handler: Handler, context: RequestContext) -> Response:
    query = context.request.query_params
    unknown = sorted({*query} - {*known})
    repeated = sorted(name for name in {*known} - _SEVERAL if len(query.getlist(name)) > 1)
    wrong = [name for name in known if query.get(name) and query[name] not in _VALUES.get(name, (query[name],))]
    if unknown:
        sentence = f"This page does not know {_quoted(unknown)}."
    elif repeated:
        sentence = f"{_quoted(repeated)} is there twice."
    elif wrong:
        name = wrong[0]
        sentence = f"“{query[name]}” is not a value of “{name}”: it is one of {', '.join(_VALUES[name])}."
    else:
        return handler(context)
    if context.is_partial:
        return context.refuse(HTTPStatus.BAD_REQUEST, sentence)
    path = path_of(context.request.scope).removeprefix("/")
    kept = {name: query[name] for name in known if name in query and name not in {*repeated, *wrong}}
    return context.render(
        "parameters.html", HTTPStatus.BAD_REQUEST, sentence=sentence, known=known, again=context.link(path, **kept)
    )


def _quoted(names: list[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)
