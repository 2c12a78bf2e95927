"""Payloads as the app's mask leaves them: the one way by which any of them is shown."""

import logging

from lowkiq_lambda.dashboard.visit import Visit

logger = logging.getLogger(__name__)


class MaskFailed(Exception):
    """The mask raised, so nothing of the payload may be shown."""


class Masking:
    """Masks the payloads of one queue, for one request."""

    def __init__(self, visit: Visit, queue_name: str) -> None:
        self._mask = visit.site.mask or visit.app.config.mask
        self._queue_name = queue_name
        self._has_told = False

    def of(self, job_id: str, payload: object) -> object:
        """What may be seen of the payload. Raises MaskFailed."""
        if self._mask is None:
            return payload
        try:
            return self._mask(self._queue_name, job_id, payload)
        except Exception as error:
            # A page has many payloads, and what breaks the mask on one of them mostly breaks it on all.
            if not self._has_told:
                self._has_told = True
                logger.exception("the mask raised for a payload of queue %r, which is not shown", self._queue_name)
            raise MaskFailed from error
