"""A worker that the app of the shop learns of because this module is found."""

from lowkiq_lambda import Batch, Worker
from tests.contrib.site.shop.jobs import NAME, app


@app.worker
class CountStock(Worker):
    """Is declared, and no more."""

    queue_name = f"count-{NAME}"
    shards_count = 1

    def perform(self, batch: Batch) -> None:
        """Do nothing."""
