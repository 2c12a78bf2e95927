"""The tenants of a queue: their turns, and a pause of one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.durations import seconds_of
from lowkiq_lambda.dashboard.pages.actions_queue import OTHER, SPANS
from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen_worker, no_queue
from lowkiq_lambda.store.server.server_time import FOREVER
from lowkiq_lambda.worker import Worker

if TYPE_CHECKING:
    from lowkiq_lambda.views import TenantOrder

NO_TENANTS = "The worker of the queue declares no tenants."
NO_ACTION = "The dashboard has no such action."
WRONG_SECONDS = "The duration must be in seconds above 0. Without one the pause has no end."
_ACTIONS = frozenset({"pause", "resume"})
_LONGEST = 100
"""Characters of a rejected duration that the form shows again."""


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    queries, name = context.app.queries(worker), context.query.get("find") or None
    order: TenantOrder = "waiting" if context.query.get("order") == "waiting" else "turn"
    found = queries.tenants(PAGE, order=order, tenant=name)
    return context.render(
        "tenants_live.html" if context.is_partial else "tenants.html",
        queue=worker.queue_name,
        shards=queries.shards(),
        rate=worker.tenant_rate,
        find=name,
        order=order,
        tenants=found.tenants,
        cut=found.cut,
    )


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    query, worker = context.query, chosen_worker(context)
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    do, tenant = query.get("do", ""), query.get("tenant", "")
    if do not in _ACTIONS or ":" in tenant:
        return context.refuse(400, NO_ACTION)
    found = context.app.queries(worker).tenants(tenant=tenant).tenants
    return context.render(
        "actions_tenant.html",
        queue=worker.queue_name,
        do=do,
        tenant=tenant,
        waiting=found[0].waiting if found else 0,
        seconds=query.get("seconds", ""),
        length=query.get("length", ""),
        wrong=_wrong(query),
        spans=SPANS,
    )


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to the tenants."""
    form, worker = context.form, context.worker_named(context.form.get("queue", ""))
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    do, tenant = form.get("do", ""), form.get("tenant", "")
    if do not in _ACTIONS or ":" in tenant:
        return context.refuse(400, NO_ACTION)
    queue, actions = worker.queue_name, context.app.actions(worker)
    if do == "resume":
        actions.resume_tenant(tenant)
        audit.note(context, "resume tenant", queue, repr(tenant), 1)
        return context.redirect("tenants", queue=queue)
    if form.get("seconds") == OTHER and _wrong(form):
        fields = {"seconds": OTHER, "length": form.get("length", "")[:_LONGEST], "tenant": tenant}
        return context.redirect("actions/tenant", queue=queue, do="pause", **fields)
    try:
        seconds = _seconds(form)
    except ValueError:
        return context.refuse(400, WRONG_SECONDS)
    actions.pause_tenant(tenant, seconds)
    what = "until it is resumed" if seconds is None else f"for {seconds:g} seconds"
    audit.note(context, "pause tenant", queue, f"{tenant!r} {what}", 1)
    return context.redirect("tenants", queue=queue)


def _refused(context: RequestContext, worker: type[Worker] | None) -> Response:
    return no_queue(context) if worker is None else context.refuse(404, NO_TENANTS)


def _seconds(form: Mapping[str, str]) -> float | None:
    """None: until it is resumed. Raises ValueError for what is no duration."""
    choice = form.get("seconds", "").strip()
    seconds = seconds_of(form.get("length", "")) if choice == OTHER else float(choice) if choice else None
    if seconds is not None and not 0 < seconds <= FOREVER:
        raise ValueError(choice)
    return seconds


def _wrong(fields: Mapping[str, str]) -> str:
    """The reason why the typed duration is invalid; empty if it is valid, or none was typed."""
    if fields.get("seconds") != OTHER:
        return ""
    try:
        seconds_of(fields.get("length", ""))
    except ValueError as error:
        return str(error)
    return ""
