"""The tenants of a queue: their fair order, and a pause of one."""

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from lowkiq_lambda.dashboard import activity, durations
from lowkiq_lambda.dashboard.context import NO_ACTION, RequestContext
from lowkiq_lambda.dashboard.pages.parts import PAGE, chosen_worker, no_queue
from lowkiq_lambda.declare.worker import Worker

if TYPE_CHECKING:
    from lowkiq_lambda.views.shards import TenantOrder

NO_TENANTS = "The worker of the queue declares no tenants."
_ACTIONS = frozenset({"pause", "resume"})


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    queue, name = context.app.operate(worker), context.query.get("find") or None
    order: TenantOrder = "waiting" if context.query.get("order") == "waiting" else "fair"
    page = queue.tenants(PAGE, order=order, tenant=name)
    return context.render(
        "tenants_live.html" if context.is_partial else "tenants.html",
        queue=worker.queue_name,
        shards=queue.shards(),
        rate=worker.tenant_rate,
        find=name,
        order=order,
        tenants=page.tenants,
        cut=page.cut,
    )


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    query, worker = context.query, chosen_worker(context)
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    do, tenant = query.get("do", ""), query.get("tenant", "")
    if do not in _ACTIONS or ":" in tenant:
        return context.refuse(400, NO_ACTION)
    tenants = context.app.operate(worker).tenants(tenant=tenant).tenants
    return context.render(
        "actions_tenant.html",
        queue=worker.queue_name,
        do=do,
        tenant=tenant,
        waiting=tenants[0].waiting if tenants else 0,
        **durations.asked(query),
    )


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to the tenants."""
    form, worker = context.form, context.worker_named(context.form.get("queue", ""))
    if worker is None or worker.tenants is None:
        return _refused(context, worker)
    do, tenant = form.get("do", ""), form.get("tenant", "")
    if do not in _ACTIONS or ":" in tenant:
        return context.refuse(400, NO_ACTION)
    queue, operated = worker.queue_name, context.app.operate(worker)
    if do == "resume":
        operated.resume(tenant=tenant)
        activity.note(context, "resume tenant", queue, repr(tenant), 1)
        return context.redirect("tenants", queue=queue)
    if durations.wrong_length(form):
        return context.redirect("actions/tenant", queue=queue, do="pause", tenant=tenant, **durations.again(form))
    try:
        seconds = durations.pause_seconds(form)
    except ValueError:
        return context.refuse(400, durations.WRONG_SECONDS)
    operated.pause(seconds, tenant=tenant)
    activity.note(context, "pause tenant", queue, f"{tenant!r} {durations.in_words(seconds)}", 1)
    return context.redirect("tenants", queue=queue)


def _refused(context: RequestContext, worker: type[Worker[Any]] | None) -> Response:
    return no_queue(context) if worker is None else context.refuse(404, NO_TENANTS)
