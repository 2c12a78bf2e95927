"""A web shop of FastAPI in one program: it takes orders, performs their jobs, and serves the dashboard."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.contrib.asgi import lifespan, mount_dashboard

FOLDER = Path(os.environ["SHOP_FOLDER"])
jobs = Lowkiq()


def note(line: str) -> None:
    """Write a line of what happened."""
    with (FOLDER / "told").open("a") as told:
        told.write(f"{line}\n")


@jobs.worker
class Ship(Worker):
    """Ships orders; one that says so waits until it is let go."""

    shards_count = 2

    def perform(self, batch: Batch) -> None:
        """Note the orders."""
        for order, payloads in batch.items():
            if payloads == ["slow"]:
                note("slow began")
                (FOLDER / "gate").read_text()
            note(f"{order} {payloads}")


@asynccontextmanager
async def database(_web: FastAPI) -> AsyncIterator[dict[str, Any]]:
    """The shop's own lifespan."""
    note("opened")
    yield {"database": "orders"}
    note("closed")


web = FastAPI(lifespan=lifespan(jobs, inner=database))
mount_dashboard(web, "/lowkiq", jobs)


@web.post("/orders/{order}", response_model=None)
def take(order: int, status: str, request: Request) -> dict[str, Any]:
    """Push the order's job."""
    return {"pushed": Ship.push_many([{"id": order, "payload": status}]), "database": request.state.database}
