"""How often something was tried, by whom, counted for all processes together; forgotten after a while."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import dashboard_key, escape

_KEPT: Final = 300


def count_attempts(backend: Backend, window: int, sources: Sequence[str], more: int) -> list[int]:
    """Adds tries to the count of each source in a window of time; returns the counts, 0 if Redis does not answer."""
    keys = [dashboard_key(f"tries:{window}:{escape(source)}", backend.prefix) for source in sources]
    counting = [(key, ("INCRBY", key, more)) for key in keys]
    answers = send_each(backend.client, [*counting, *((key, ("EXPIRE", key, _KEPT)) for key in keys)])
    return [answer if isinstance(answer, int) else 0 for answer in answers[: len(keys)]]
