"""The web app: takes the shop's webhooks, performs their jobs, and shows the queues at /lowkiq/."""

from msgspec import Struct, ValidationError
from msgspec.json import decode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.erp_sync.jobs import (
    NIGHTLY,
    OrderChanged,
    Reconcile,
    StockMoved,
    SyncOrder,
    UpdateStock,
    app,
    export_catalogue,
)
from lowkiq_lambda import BackendError
from lowkiq_lambda.contrib.asgi import lifespan, mount_dashboard

OVER = ("completed", "cancelled")


class OrderWebhook(Struct):
    """What the shop sends when an order has changed."""

    id: str
    version: int
    status: str
    total: int


class StockWebhook(Struct):
    """What the shop sends when pieces of a product came or went."""

    sku: str
    movement: int
    by: int


async def order_changed(request: Request) -> Response:
    """Accepted is what Redis has: the shop sends all else again."""
    hook = decode(await request.body(), type=OrderWebhook)
    await SyncOrder.apush(hook.id, OrderChanged(hook.status, hook.total), score=hook.version)
    return Response(status_code=202)


async def stock_moved(request: Request) -> Response:
    """As above; a webhook that comes twice while the first waits is one payload."""
    hook = decode(await request.body(), type=StockWebhook)
    await UpdateStock.apush(hook.sku, StockMoved(hook.movement, hook.by))
    return Response(status_code=202)


def export(_request: Request) -> Response:
    """Begin an export of the catalogue."""
    return JSONResponse({"task": export_catalogue()}, 202)


def tonight(_request: Request) -> Response:
    """Have the nightly job run now."""
    app.schedules.run(NIGHTLY, worker=Reconcile)
    return Response(status_code=202)


def status(_request: Request) -> Response:
    """What is left to do, jobs and tasks together, what nobody could do, and which shards were made."""
    # First the tasks: of one whose last item ended as its process was killed, asking pushes the job that comes last.
    waiting = sum(app.tasks.get(task.id).progress().state not in OVER for task in app.tasks.list().tasks)
    waiting += sum(queue.length + queue.in_flight for queue in app.operate.metrics().values())
    morgue = [
        {"queue": worker.queue_name, "id": job.id, "error": job.error}
        for worker in app.workers
        for job in app.operate(worker).morgue.list()
    ]
    moves = [f"{move.shards} to {move.to}" for move in reversed(app.operate(SyncOrder).auto.state().moves)]
    return JSONResponse({"waiting": waiting, "morgue": morgue, "moves": moves[::-1]})


def refuse(_request: Request, error: Exception) -> Response:
    """No webhook of ours."""
    return JSONResponse({"reason": str(error)}, 422)


def try_again(_request: Request, error: Exception) -> Response:
    """Redis cannot take it now."""
    return JSONResponse({"reason": str(error)}, 503)


web = Starlette(
    routes=[
        Route("/webhooks/orders", order_changed, methods=["POST"]),
        Route("/webhooks/stock", stock_moved, methods=["POST"]),
        Route("/catalogue/exports", export, methods=["POST"]),
        Route("/night", tonight, methods=["POST"]),
        Route("/status", status),
    ],
    exception_handlers={ValidationError: refuse, BackendError: try_again},
    # One program does it all; for a process of its own that performs jobs see docs/fastapi.md.
    lifespan=lifespan(app, daemon=True),
)
mount_dashboard(web, "/lowkiq", app)
