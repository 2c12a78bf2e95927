"""All scripts, and all that people look at."""

from pathlib import Path

import lowkiq_lambda.store
from lowkiq_lambda.operate.inspect.journal import read_places
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import FEATURES, LIMITER, LIMITS, ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.store.shard.state import probe
from tests.kit.operators import operator_of

LUA = Path(lowkiq_lambda.store.__file__).parent / "lua"
OF_TASKS = {path.stem for path in LUA.glob("*/task_*.lua")}
OF_QUEUES = {
    name
    for folder in ("drain", "operate", "read")
    for name in (path.stem for path in (LUA / folder).glob("*.lua"))
    if name not in OF_TASKS and {*script(name, (LIMITS, LIMITER)).keys} & {*FEATURES[LIMITS], *FEATURES[LIMITER]}
}
"""The scripts that have keys of a limited queue, or of a limiter."""
OF_TENANTS = {"pause_tenant", "tenant_lanes"}
OF_MEMORY = {"forget_keys", "forget_marks"}
"""Those that forget what few queues remember."""
APART = {"include", "duty", "schedule", "task", "move", "process"}
OF_FEW = OF_QUEUES | OF_TENANTS | OF_TASKS | OF_MEMORY
SCRIPTS = {path.stem for path in LUA.glob("*/*.lua") if path.parent.name not in APART} - OF_FEW
"""Of each shard. Those of duties have a key of their app; the others that are left out, keys that few shards have."""


def look_at_everything(connected: Backend, shard: ShardRef) -> None:
    """All that only reads."""
    reader = ShardReader(connected, 0.0, only(shard))
    queue = operator_of(reader, retry_for=0.0)
    queue.waiting.fetch(["a", "b"])
    queue.morgue.fetch(["a", "b"])
    queue.waiting.list("id")
    queue.waiting.list()
    queue.waiting.list("retry_count")
    queue.morgue.list("id")
    queue.morgue.list()
    reader.ask_each("filter_ids", [(shard, ["morgue", "", "", "", "", "", "", "line", "a", "b"])])
    reader.ask_each("damaged_records", [(shard, [100])])
    reader.read_each("is_limited", [shard])
    reader.ask_each("overdue", [(shard, [0])])
    reader.ask_each("due_sizes", [(shard, [0, 10])])
    reader.ask_each("error_texts", [(shard, ["waiting", "0", 100, "line"]), (shard, ["morgue", "0", 100, "text"])])
    reader.ask_each("preview_requeue", [(shard, ["score", "0", "0", "a", "b"])])
    queue.in_flight.list()
    queue.waiting.search("no", prefix="a")
    queue.morgue.search("no", prefix="a")
    queue.shards()
    queue.explain("a")
    queue.biography("a")
    read_places(reader, shard, ["a"])
    queue.tenants()
    queue.requests()
    queue.undoable()
    queue_metrics(ShardReader(connected, retry_for=0.0), [[shard]])
    probe(connected, [shard], 0.0)
