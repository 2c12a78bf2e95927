"""Operations on saved views."""

from http import HTTPStatus
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard import saved_views
from lowkiq_lambda.dashboard.api.operations import ApiError, NoParams
from lowkiq_lambda.dashboard.api.requests import ReasonedAct
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.saved_views import LONGEST_NAME, SavedView
from lowkiq_lambda.operate.presentation.schedules import Removed

ViewName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_NAME, description="The name, without spaces around it.")
]


class NewView(ReasonedAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view to save."""

    name: ViewName
    address: Annotated[
        str,
        Meta(description="A page with its filter, such as `morgue?queue=SyncShop&text=Timeout`.", max_length=10_000),
    ]


class OneView(ReasonedAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view, by its name."""

    name: ViewName


class SavedViews(msgspec.Struct, frozen=True):
    """All saved views, by name."""

    views: list[SavedView]


def views(context: RequestContext, params: NoParams) -> SavedViews:  # noqa: ARG001 - there are none
    """The saved views: pages with their filters, by names."""
    return SavedViews(views=saved_views.saved_views(context))


def save_view(context: RequestContext, params: NewView) -> SavedView:
    """Save a view by a name, in place of one of that name; some 50 are kept.

    The response has the address as it is kept: from the first page of a list on. If the app has a mask, the address has
    no `payload`, as Redis would keep what is searched for.
    """
    try:
        return saved_views.save(context, params.name, params.address)
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_request", str(error)) from error


def delete_view(context: RequestContext, params: OneView) -> Removed:
    """Delete a view if there is one of that name."""
    return Removed(removed=saved_views.delete(context, params.name))
