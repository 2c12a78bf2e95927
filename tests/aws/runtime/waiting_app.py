"""An app for functions whose handler is a coroutine: it takes a connection of a pool that its module keeps."""

import asyncio
import os

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.kit.telling import tell

app = Lowkiq(Config.from_env(os.environ))
pool: "asyncio.Queue[str]" = asyncio.Queue()
pool.put_nowait("connection")


@app.worker
class Perform(Worker):
    """Each payload says whether to hang."""

    queue_name = os.environ["STAGE_QUEUE"]
    shards_count = 1
    concurrency = 4

    async def perform(self, batch: Batch) -> None:
        """Wait for the connection, and perhaps for ever."""
        ((job_id, payloads),) = batch.items()
        connection = await pool.get()
        tell("begin", id=job_id, loop=id(asyncio.get_running_loop()))
        pool.put_nowait(connection)
        try:
            if payloads[-1]["do"] == "hang":
                await asyncio.Event().wait()
        finally:
            tell("end", id=job_id)
