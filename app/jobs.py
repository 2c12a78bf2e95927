"""The jobs of this deployment. Put your own here, or in modules beside this one, and name the app in `AppModule`."""

import logging

from lowkiq_lambda import Batch, Lowkiq, Worker

logger = logging.getLogger(__name__)

app = Lowkiq()


@app.worker
class SyncOrder(Worker):
    """Applies the changes of an order, in order, all that have gathered at once."""

    shards_count = 5  # the parameter ShardIndexes names each of them: 0,1,2,3,4
    batch_size = 10
    max_retry_count = 5

    def perform(self, batch: Batch) -> None:
        """Say what would be written: the newest version of each order."""
        for id, payloads in batch.items():
            logger.info("order %s: %d changes, the newest is %s", id, len(payloads), payloads[-1])
