"""All that programs can ask, in the order of the description."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from lowkiq_lambda.dashboard.api import actions, jobs, numbers, openapi, prometheus, sweeps
from lowkiq_lambda.dashboard.api.health import Pulse
from lowkiq_lambda.dashboard.api.operations import PREFIX, Operation, operation
from lowkiq_lambda.dashboard.visit import Site, get

OPERATIONS: Final[Sequence[Operation]] = (
    operation("GET", "/stats", numbers.stats),
    operation("GET", "/queues", numbers.queues),
    operation("GET", "/shards", numbers.shards),
    operation("GET", "/job", jobs.job),
    operation("GET", "/processing", jobs.processing),
    operation("GET", "/waiting/range_by_id", jobs.waiting_by_id),
    operation("GET", "/waiting/range_by_perform_in", jobs.waiting_by_perform_in),
    operation("GET", "/waiting/range_by_retry_count", jobs.waiting_by_retry_count),
    operation("GET", "/waiting/search", jobs.waiting_search),
    operation("GET", "/morgue/range_by_id", jobs.morgue_by_id),
    operation("GET", "/morgue/range_by_updated_at", jobs.morgue_by_updated_at),
    operation("GET", "/morgue/search", jobs.morgue_search),
    operation("POST", "/waiting/delete", actions.delete_waiting),
    operation("POST", "/waiting/expedite", actions.expedite),
    operation("POST", "/waiting/kill", actions.kill),
    operation("POST", "/waiting/delete_all_failed", sweeps.delete_all_failed),
    operation("POST", "/waiting/kill_all_failed", sweeps.kill_all_failed),
    operation("POST", "/waiting/expedite_all", sweeps.expedite_all),
    operation("POST", "/waiting/delete_found", sweeps.delete_found),
    operation("POST", "/morgue/requeue", actions.requeue),
    operation("POST", "/morgue/requeue_all", sweeps.requeue_all),
    operation("POST", "/morgue/delete", actions.delete_buried),
    operation("POST", "/morgue/delete_all", sweeps.delete_all_buried),
    operation("POST", "/queue/pause", actions.pause),
    operation("POST", "/queue/resume", actions.resume),
    operation("POST", "/shard/evict", actions.evict),
)


def routes(site: Site) -> list[BaseRoute]:
    """Where all of it is served."""
    return [
        get(site, "/healthz", Pulse(site.now)),
        get(site, "/metrics", prometheus.show),
        get(site, f"{PREFIX}/openapi.json", openapi.shower(OPERATIONS)),
        *(one.route(site) for one in OPERATIONS),
    ]
