"""Tenants of a queue as JSON, for the API and for the command line."""

from typing import Annotated

import msgspec
from msgspec import Meta

from lowkiq_lambda.views.shards import Tenants, TenantView


class TenantStats(TenantView, frozen=True, kw_only=True):
    """A tenant at the time `at`. Times are Unix seconds by the server's clock; null: none.

    `waiting`: ids. `due_at`: when the first of them is due. `served_from`: from then on it can be served. `served_at`:
    when ids of it were claimed last. `paused_until`: the end of the current or the last pause; null for one without an
    end, too. `rests_until`: when its rate lets the next id begin.
    """

    paused: Annotated[
        bool, Meta(description="Whether the tenant is paused; without a `paused_until` the pause has no end.")
    ]


class TenantsFound(msgspec.Struct, frozen=True):
    """Tenants with waiting ids, or that are remembered. `cut`: there are more."""

    tenants: list[TenantStats]
    cut: bool


def tenants_response(page: Tenants) -> TenantsFound:
    """The tenants as JSON."""
    views = [TenantStats(**msgspec.structs.asdict(view), paused=view.is_paused) for view in page.tenants]
    return TenantsFound(views, page.cut)
