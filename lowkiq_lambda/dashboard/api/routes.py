"""The API's operations in the order of its description."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from lowkiq_lambda.dashboard.api import (
    actions,
    bulk_actions,
    capacity,
    editing,
    errors,
    job_requests,
    jobs,
    openapi,
    runs,
    schedules,
    stats,
    tasks,
    tenants,
)
from lowkiq_lambda.dashboard.api.monitoring import HealthCheck, MetricsPage
from lowkiq_lambda.dashboard.api.operations import PREFIX, Operation, operation
from lowkiq_lambda.dashboard.context import Site, get

OPERATIONS: Final[Sequence[Operation]] = (
    operation("GET", "/stats", stats.stats),
    operation("GET", "/queues", stats.queues),
    operation("GET", "/shards", stats.shards),
    operation("GET", "/history", stats.history),
    operation("GET", "/why_late", stats.why_late),
    operation("GET", "/hours", stats.hours),
    operation("GET", "/verified", stats.verified),
    operation("GET", "/errors", errors.errors),
    operation("GET", "/activity", errors.activity),
    operation("GET", "/runs", runs.runs),
    operation("GET", "/releases", runs.releases),
    operation("POST", "/runs/replay", runs.replay),
    operation("GET", "/waiting/count", bulk_actions.count_waiting),
    operation("GET", "/morgue/count", bulk_actions.count_dead),
    operation("GET", "/job", jobs.job),
    operation("GET", "/processing", jobs.processing),
    operation("GET", "/waiting/range_by_id", jobs.waiting_by_id),
    operation("GET", "/waiting/range_by_due_at", jobs.waiting_by_due_at),
    operation("GET", "/waiting/range_by_retry_count", jobs.waiting_by_retry_count),
    operation("GET", "/waiting/search", jobs.waiting_search),
    operation("GET", "/morgue/range_by_id", jobs.morgue_by_id),
    operation("GET", "/morgue/range_by_updated_at", jobs.morgue_by_updated_at),
    operation("GET", "/morgue/search", jobs.morgue_search),
    operation("POST", "/waiting/delete", actions.delete_waiting),
    operation("POST", "/waiting/run_now", actions.run_now),
    operation("POST", "/waiting/kill", actions.kill),
    operation("POST", "/waiting/unblock", actions.unblock),
    operation("POST", "/waiting/delete_all_failed", bulk_actions.delete_all_failed),
    operation("POST", "/waiting/kill_all", bulk_actions.kill_all),
    operation("POST", "/waiting/run_now_all", bulk_actions.run_now_all),
    operation("POST", "/waiting/delete_found", bulk_actions.delete_found),
    operation("POST", "/morgue/requeue", actions.requeue),
    operation("POST", "/morgue/requeue_all", bulk_actions.requeue_all),
    operation("POST", "/morgue/delete", actions.delete_dead),
    operation("POST", "/morgue/delete_all", bulk_actions.delete_all_dead),
    operation("GET", "/job/payloads", editing.payloads),
    operation("POST", "/job/edit", editing.edit),
    operation("GET", "/actions/undoable", actions.undoable),
    operation("POST", "/actions/{id}/undo", actions.undo),
    operation("GET", "/jobs/requests", job_requests.requests),
    operation("POST", "/jobs/cancel", job_requests.cancel),
    operation("POST", "/jobs/pause", job_requests.pause),
    operation("POST", "/jobs/resume", job_requests.resume),
    operation("POST", "/queue/pause", actions.pause),
    operation("POST", "/queue/resume", actions.resume),
    operation("GET", "/reshard", capacity.state),
    operation("POST", "/queue/reshard", capacity.reshard),
    operation("POST", "/queue/turn_round", capacity.turn_round),
    operation("POST", "/shard/evict", actions.evict),
    operation("GET", "/limits", capacity.limits),
    operation("POST", "/limits/set", capacity.set_limits),
    operation("POST", "/limits/reset", capacity.reset),
    operation("GET", "/tenants", tenants.tenants),
    operation("POST", "/tenant/pause", tenants.pause),
    operation("POST", "/tenant/resume", tenants.resume),
    operation("GET", "/schedules", schedules.schedules),
    operation("GET", "/schedule", schedules.schedule),
    operation("POST", "/schedule/put", schedules.put),
    operation("POST", "/schedule/enable", schedules.enable),
    operation("POST", "/schedule/disable", schedules.disable),
    operation("POST", "/schedule/run_now", schedules.run_now),
    operation("POST", "/schedule/remove", schedules.remove),
    operation("POST", "/schedules/enable_all", schedules.enable_all),
    operation("POST", "/schedules/disable_all", schedules.disable_all),
    operation("GET", "/tasks", tasks.tasks),
    operation("GET", "/tasks/{id}", tasks.task),
    operation("GET", "/tasks/{id}/items", tasks.task_items),
    operation("POST", "/tasks/{id}/cancel", tasks.cancel),
    operation("GET", "/processes", actions.processes),
    operation("POST", "/process/quiet", actions.quiet),
    operation("POST", "/process/stop", actions.stop),
)


def routes(site: Site) -> list[BaseRoute]:
    """The routes of the API."""
    return [
        get(site, "/healthz", HealthCheck(site.now)),
        get(site, "/metrics", MetricsPage()),
        get(site, f"{PREFIX}/openapi.json", openapi.openapi_endpoint(OPERATIONS)),
        *(each.route(site) for each in OPERATIONS),
    ]
