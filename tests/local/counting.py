"""A queue whose handler notes the ids."""

from lowkiq_lambda import Batch, Lowkiq, Worker


class Counting:
    """A queue whose handler notes the ids."""

    def __init__(self, app: Lowkiq, queue_name: str, shards_count: int = 2) -> None:
        self.done: list[str] = []
        counting = self

        class Count(Worker):
            def perform(self, batch: Batch) -> None:
                counting.done.extend(batch)

        Count.queue_name, Count.shards_count = queue_name, shards_count
        self.worker = app.worker(Count)
