"""A queue of an app with a namespace moves within it."""

from lowkiq_lambda.testing import ManualClock
from tests.kit.confined import confining
from tests.kit.servers import Server
from tests.reshard.filled import FilledQueue


def test_jobs_in_all_states_and_a_move(server: Server, clock: ManualClock, queue_name: str) -> None:
    """Pushes of all kinds, retries, cursors, deaths and items; then the queue is resharded, and drained."""
    with confining(server, clock, queue_name) as confined:
        app = confined.app("shop")
        filled = FilledQueue(app, queue_name, clock, server.admin, 2, tenants="spread")
        filled.fill(3)

        assert app.operate.metrics()[queue_name].length
        app.operate(filled.worker).reshard(to=3)
        clock.advance(10_000.0)
        app.drain()
        app.operate.actions(filled.worker).morgue_queue_up_all_jobs()
        filled.push(plain=True)
        clock.advance(100.0)
        assert app.drain()
