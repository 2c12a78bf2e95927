"""Masks payloads before they are shown."""

import logging

from lowkiq_lambda.settings.protocols import Mask

logger = logging.getLogger(__name__)


class MaskFailed(Exception):
    """The mask raised, so the payload is not shown."""


class Masking:
    """Masks the payloads of one queue, for one answer."""

    def __init__(self, mask: Mask | None, queue_name: str) -> None:
        self._mask = mask
        self._queue_name = queue_name
        self._has_logged = False

    def of(self, job_id: str, payload: object) -> object:
        """The masked payload. Raises MaskFailed."""
        if self._mask is None:
            return payload
        try:
            return self._mask(self._queue_name, job_id, payload)
        except Exception as error:
            # One line for each answer: a mask that fails on one payload mostly fails on all.
            if not self._has_logged:
                self._has_logged = True
                logger.exception("the mask failed on a payload of queue %r, which is not shown", self._queue_name)
            raise MaskFailed from error

    def shows(self, job_id: str, payload: object) -> bool:
        """Whether it leaves the payload as it is: what is not seen cannot be edited."""
        try:
            return self._mask is None or (not isinstance(payload, bytes) and bool(self.of(job_id, payload) == payload))
        except MaskFailed:
            return False
