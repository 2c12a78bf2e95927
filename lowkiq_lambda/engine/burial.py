"""What a worker is told of its ids that just failed for the last time. Imported where one did: in most drains none."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.error_text import call_safely, loggable
from lowkiq_lambda.base.forks import in_parent_alone
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.perform import about, hook_errors
from lowkiq_lambda.jobs.job import PLACE, MorgueJob, ScoredPayload, score_of

logger = logging.getLogger(__name__)


class Burial(msgspec.Struct, frozen=True):
    """Reads what was buried of one worker."""

    worker: type[Worker[Any]]
    load_payload: Callable[[bytes], object]
    texts: ErrorText
    clock: Clock

    def tell(self, buried: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Log the ids and call the worker's hook; whatever it raises, what is in the morgue stays there.

        `buried`: (id, entry, error) of each.
        """
        message = "jobs are held" if self.worker.dead_head == "hold" else "jobs went to the morgue"
        logger.warning(message, extra=about(self.worker, [job_id for job_id, _, _ in buried]))
        try:
            in_parent_alone(self.worker().retries_exhausted, [self._morgue_job(*one) for one in buried])
        except hook_errors() as error:
            name = self.worker.__name__
            logger.error("%s.retries_exhausted raised", name, exc_info=loggable(error))  # noqa: TRY400 - not all of it

    def _morgue_job(self, job_id: str, entry: bytes, error: bytes) -> MorgueJob:
        payload, broken = call_safely(self.load_payload, entry[PLACE:])
        if broken is not None:
            # Whatever the codec raises, the raw bytes are shown.
            payload = entry[PLACE:]
        text = self.texts.read(error)
        return MorgueJob(job_id, [ScoredPayload(payload, score_of(entry))], self.clock.time(), text)
