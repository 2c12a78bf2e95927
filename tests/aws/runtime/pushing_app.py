"""A function that pushes what its event says, and its answer tells how many of the jobs it had to keep."""

import os
from typing import Any

from lowkiq_lambda import Config, Lowkiq
from tests.kit.telling import declare_stage_worker, tell

app = Lowkiq(Config.from_env(os.environ))
declare_stage_worker(app, {})
(Perform,) = app.workers


@app.flushes
def handler(event: dict[str, Any], _context: object) -> int:
    """Push jobs with these ids, one after the other."""
    pushed = [Perform.push_many([{"id": job_id, "payload": {"do": "note", "number": 1}}]) for job_id in event["ids"]]
    tell("pushed")
    return sum(job.buffered for jobs in pushed for job in jobs)
