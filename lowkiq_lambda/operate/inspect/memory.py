"""How much memory the keys of a queue take, by what is in them: asked of a part of its shards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from lowkiq_lambda.store.server.faults import translated, unless_refused
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.history import MINUTES, SECONDS, TIMES
from lowkiq_lambda.store.shard.keys import ShardRef, key_names

Kind: TypeAlias = Literal["waiting", "in flight", "errors", "morgue", "push tokens", "history", "the rest"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SHARDS_SAMPLED: Final = 8
"""Of a queue: the others count as these do."""
_ELEMENTS_SAMPLED: Final = 20
"""Of a key: the server weighs so many of its elements, and counts the others as these."""
_KIND_OF: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("due", "jobs", "box", "seen", "since", "retry", "lines", "lanes", "refs", "rows"), "waiting"),
    "flight": "in flight",
    **dict.fromkeys(("errors", "failures", "texts"), "errors"),
    **dict.fromkeys(("morgue", "morgue_payloads", "morgue_errors"), "morgue"),
    **dict.fromkeys(("pushes_even", "pushes_odd"), "push tokens"),
    **dict.fromkeys(("journal", "runs"), "history"),
}


class QueueMemory(NamedTuple):
    """Bytes by kind. `sampled`: how many of the shards were measured; 0 if no reply had a number."""

    bytes: Mapping[Kind, int]
    sampled: int
    shards: int


def queue_memory(backend: Backend, queue_name: str, shards: Sequence[ShardRef], now: float) -> QueueMemory:
    """The memory of the queue's shards and its history. Raises BackendError."""
    # Spread over all of them: the last ones may have been filled by another code.
    step = max(1, len(shards) // SHARDS_SAMPLED)
    sample = shards[::step][:SHARDS_SAMPLED]
    keys = [*_keys_of(sample), *(("history", key, 1.0) for key in _history_keys(queue_name, now, backend.prefix))]
    scale = len(shards) / len(sample)
    with translated():
        answers = send_each(
            backend.client,
            [(key, ("MEMORY", "USAGE", key, "SAMPLES", _ELEMENTS_SAMPLED)) for _, key, _ in keys],
        )
        sizes = Counter[Kind]()
        for (kind, _, times), answer in zip(keys, answers, strict=True):
            sizes[kind] += round((unless_refused(answer) or 0) * (times or scale))
    return QueueMemory(sizes, len(sample), len(shards)) if sizes.total() else QueueMemory({}, 0, len(shards))


def _keys_of(shards: Sequence[ShardRef]) -> Iterator[tuple[Kind, str, float]]:
    """Each key of these, and 0 for how often it counts, as that depends on how many there are."""
    for shard in shards:
        for name, key in zip(key_names(shard.features), shard.keys, strict=True):
            yield _KIND_OF.get(name, "the rest"), key, 0.0


def _history_keys(queue_name: str, now: float, prefix: str) -> Iterator[str]:
    for kind in (SECONDS, MINUTES, TIMES):
        for window in range(kind.kept // kind.window + 2):
            yield kind.key(queue_name, now - window * kind.window, prefix)
