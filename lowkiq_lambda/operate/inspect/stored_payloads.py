"""Payloads as a queue stores them, and as people may see them."""

from collections.abc import Callable
from typing import NamedTuple

from lowkiq_lambda.base.error_text import call_safely
from lowkiq_lambda.operate.inspect.payload_query import PayloadQuery
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.store.shard.codec import load_json


class StoredPayloads(NamedTuple):
    """Reads payloads of one queue by the app's `Config.load_payload`, and searches them as `Config.mask` shows them."""

    queue_name: str
    load: Callable[[bytes], object] = load_json
    mask: Mask | None = None

    def decoded(self, stored: bytes) -> object:
        """The payload; the bytes where the codec cannot decode them."""
        # A codec may raise anything, and the rest of the page can be shown.
        payload, broken = call_safely(self.load, stored)
        return payload if broken is None else stored

    def literal(self, query: PayloadQuery) -> bytes:
        """Bytes, lower case, that a stored payload has which meets the query; b"" where bytes tell nothing."""
        return query.literal if self.load is load_json and self.mask is None else b""

    def meets(self, job_id: str, payload: object, query: PayloadQuery) -> bool:
        """Whether people may see in the payload what the query asks for: a search tells nothing that a mask hides."""
        if self.mask is None:
            return query.matches(payload)
        masked, broken = call_safely(lambda decoded: self.mask and self.mask(self.queue_name, job_id, decoded), payload)
        return broken is None and query.matches(masked)
