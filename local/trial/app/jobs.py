"""The app of the trial: it writes into a ledger what it does, for the checker."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from lowkiq_lambda import Batch, Incoming, Lowkiq, Worker

ABOUT: Final = "trial.json"
"""A file of the package: `release`, the number of the package, and `ledger`, the path of the ledger on this machine.

That is a list of rows, one for each start and each end of an id's payloads, in the order in which they were written.
"""
SHARDS: Final = 20
WORK: Final = 0.005
"""Seconds that an id's payloads take."""

app = Lowkiq()


@app.worker
class Record(Worker):
    """Writes a row, works, and writes another row."""

    shards_count = SHARDS
    batch_size = 10

    def perform(self, batch: Batch) -> None:
        """Record the payloads of each id."""
        about = json.loads(Path(__file__).with_name(ABOUT).read_text())
        ledger = os.open(about["ledger"], os.O_WRONLY | os.O_APPEND)
        try:
            for id, payloads in batch.items():
                run = uuid4().hex
                os.write(ledger, json.dumps(["start", id, run, payloads, about["release"]]).encode() + b"\n")
                time.sleep(WORK)
                os.write(ledger, json.dumps(["end", id, run]).encode() + b"\n")
        finally:
            os.close(ledger)


@app.ingest
def changes(record: Incoming) -> Iterator[tuple[type[Worker], dict[str, Any]]]:
    """What comes in by the stream and by events: an id, and the number of its change."""
    change = record.body.get("new", record.body)
    yield Record, {"id": change["id"], "payload": change["number"]}
