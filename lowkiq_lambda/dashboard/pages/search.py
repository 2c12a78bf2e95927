"""What the search box of every page finds: ids in all queues, tasks, queues, pages and saved views."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError, NoSuchTask
from lowkiq_lambda.dashboard.context import MAIN, RequestContext
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.dashboard.saved_views import SavedView, delete, save, saved_views
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.operate.presentation.formatting import quoted, unescaped, visible
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.views.jobs import FoundId, FoundIds, Place

IDS: Final = 100
"""So many ids that begin with the text are shown."""
QUEUES: Final = 50
"""And so many queues."""


class IdRow(msgspec.Struct, frozen=True, kw_only=True):
    """An id in a queue. `link`: None for an id that is too long for an address."""

    queue: str
    name: str
    link: str | None
    places: tuple[Place, ...]


class PageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is found by its name."""

    name: str
    kind: str
    link: str


def show(context: RequestContext) -> Response:
    """The page."""
    typed = context.query.get("q", "")
    with Together() as side:
        search, views = side.look(_found, context, typed), side.look(saved_views, context)
    matches, meant = search.result
    return context.render(
        "search.html",
        typed=typed,
        exact=[*_rows(context, matches.exact)],
        similar=[*_rows(context, matches.similar)],
        pages=[*_pages(context, typed, views.result)] if typed.strip() else [],
        views=[] if typed else views.result,
        root=context.root,
        cut=matches.cut,
        skipped=matches.skipped,
        sentence=f"No id begins with “{visible(typed)}”, where the backslash is a character of the id. The ids below "
        "are those that the pages show in this form."
        if meant != typed
        else "",
    )


def save_view(context: RequestContext) -> Response:
    """Saves the view of the form, and redirects to the list of them."""
    try:
        save(context, context.form.get("name", ""), context.form.get("address", ""))
    except ValueError as error:
        return context.refuse(400, str(error))
    return context.redirect("search")


def delete_view(context: RequestContext) -> Response:
    """Deletes it, and redirects to the list of the others."""
    delete(context, context.form.get("name", ""))
    return context.redirect("search")


def _found(context: RequestContext, typed: str) -> tuple[FoundIds, str]:
    """The ids, and the text that found them: the typed one, without spaces around it, or as the pages show it."""
    for text in dict.fromkeys((typed, typed.strip(), unescaped(typed))):
        try:
            matches = context.app.operate.find(id_text(text), IDS) if text else FoundIds()
        except JobError:
            continue
        if matches.exact or matches.similar or matches.cut:
            return matches, typed if text == typed.strip() else text
    return FoundIds(), typed


def _rows(context: RequestContext, ids: Iterable[FoundId]) -> Iterator[IdRow]:
    for match in ids:
        has_link = len(quoted(match.id)) <= LONGEST_LINK
        link = context.link("job", queue=match.queue_name, id=match.id) if has_link else None
        yield IdRow(queue=match.queue_name, name=shown_id(match.id), link=link, places=match.places)


def _pages(context: RequestContext, typed: str, views: Iterable[SavedView]) -> Iterator[PageRow]:
    words = typed.strip().casefold()
    with suppress(NoSuchTask):
        task = context.app.tasks.get(typed.strip()).progress()
        yield PageRow(name=task.name, kind="task", link=context.link("task", id=task.id))
    names = [name for name in context.app.core.queues if words in name.casefold()]
    for name in sorted(names, key=lambda name: (name.casefold() != words, name.casefold()))[:QUEUES]:
        yield PageRow(name=name, kind="queue", link=context.link("queue", queue=name))
    for path, name in MAIN.items():
        if words in name.casefold():
            yield PageRow(name=name, kind="page", link=context.link(path))
    for view in views:
        if view.address is not None and words in view.name.casefold():
            yield PageRow(name=view.name, kind="saved view", link=context.root + view.address)
