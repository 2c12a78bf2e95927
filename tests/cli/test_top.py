"""`lowkiq top` in a terminal of its own, on a server of its own: what stands there, and what its keys do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.cli import main
from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.cli.conftest import ShopOfCommands, handle
from tests.kit.apps import closing_app
from tests.kit.screens import Screen, terminal_of
from tests.kit.servers import Server

APP = """
from lowkiq_lambda import Lowkiq, Worker
app = Lowkiq()
for name in ("SyncOrder", "SyncErp", "MailDigest"):
    app.worker(type(name, (Worker,), {"perform": lambda self, batch: None, "max_retry_count": 0}))
"""
TOP = [sys.executable, "-m", "lowkiq_lambda", "top"]


@pytest.fixture
def shop_app(own_server: Server) -> Iterator[Lowkiq]:
    """The app of the terminal, with two dead ids and one that waits."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        body: dict[str, Any] = {"perform": lambda _self, batch: handle(batch), "max_retry_count": 0}
        erp: Any = app.worker(type("SyncErp", (Worker,), body))
        order: Any = app.worker(type("SyncOrder", (Worker,), body))
        order.push("order-1", delay=60)
        erp.push_many([{"id": "bad-1"}, {"id": "bad-2"}])
        app.drain()
        yield app


def environment(own_server: Server, folder: Path, **more: str) -> dict[str, str]:
    """That of the process: it finds the app in the folder."""
    (folder / "shop_of_top.py").write_text(APP)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "LOWKIQ_APP": "shop_of_top:app",
        "LOWKIQ_REDIS_URL": own_server.url,
        **more,
    }


def at_start(screen: Screen) -> None:
    """Wait for the first look."""
    screen.until("SyncErp.*Enter open")


@pytest.mark.parametrize(("columns", "is_wide"), [(80, False), (160, True)])
def test_a_screen_of_any_width_has_the_queues_and_what_needs_somebody(
    own_server: Server, shop_app: Lowkiq, tmp_path: Path, columns: int, *, is_wide: bool
) -> None:
    """No line is wider than the terminal; a wide one has rates and the last ten minutes."""
    assert shop_app.workers
    with terminal_of(TOP, environment(own_server, tmp_path, NO_COLOR="1"), columns=columns) as screen:
        at_start(screen)
        screen.press("?")
        screen.until("these keys")
        screen.press("\x1b")
        head = (
            "QUEUE +10 MIN +WAITING.*ENDED/S +FAIL/S"
            if is_wide
            else "QUEUE +WAITING +LAG +IN FLIGHT +RETRIES +MORGUE +\r?\n"
        )
        shown = screen.until(f"Needs somebody.*{head}.*SyncErp.*q quit")
        assert max(map(len, shown.splitlines())) <= columns
        assert "\x1b[31m" not in screen.raw
        screen.press("q")
        assert screen.ended() == 0


def test_keys_open_filter_and_act(own_server: Server, shop_app: Lowkiq, tmp_path: Path) -> None:
    """An act asks first, and leaves a line with the person; any key but y changes nothing."""
    erp = next(worker for worker in shop_app.workers if worker.queue_name == "SyncErp")
    with terminal_of(TOP, environment(own_server, tmp_path, LOWKIQ_OPERATOR="olga"), columns=120) as screen:
        at_start(screen)
        screen.press("/erp\r")
        screen.until("Queues with .erp. in their names.*SyncErp.*q quit")
        screen.press("\r")
        screen.until("in the morgue +2.*q quit")
        screen.press("r")
        screen.until("Requeue all 2 ids in the morgue of SyncErp")
        screen.press("n")
        screen.until("Nothing was changed")
        assert shop_app.operate(erp).morgue.count() == 2
        screen.press("ry")
        screen.until("2 ids of SyncErp wait again")
        screen.press("p")
        screen.until("Pause SyncErp")
        screen.press("y")
        screen.until("is paused until it is resumed")
        screen.until("paused.*q quit")
        screen.press("e")
        screen.until("Last errors")
        screen.press("P")
        screen.until("Processes that drain")
        screen.press("q")
        assert screen.ended() == 0
    assert shop_app.operate(erp).morgue.count() == 0
    assert all(shard.is_paused for shard in shop_app.operate(erp).shards())
    lines = read_activity(shop_app.core.backend, 1.0, ["SyncErp"], 10)
    assert {line.action: line.who for line in lines} == {"pause": "olga (lowkiq)", "requeue": "olga (lowkiq)"}


def test_a_server_that_does_not_answer_keeps_no_key_waiting(
    own_server: Server, shop_app: Lowkiq, tmp_path: Path
) -> None:
    """The screen tells the age of what it shows, and goes on when the server does."""
    assert shop_app.workers
    with terminal_of(TOP, environment(own_server, tmp_path), columns=120) as screen:
        at_start(screen)
        own_server.freeze()
        try:
            screen.until(r"as of ([3-9]|\d\d) s ago")
            screen.press("?")
            screen.until("these keys")
        finally:
            own_server.thaw()
        screen.press("\x1b")
        screen.until("as of [01] s ago.*q quit")
        screen.press("q")
        assert screen.ended() == 0


def test_without_a_terminal_it_names_the_command_that_needs_none(shop: ShopOfCommands) -> None:
    """A script gets no screen, but the way to the numbers."""
    assert main(["top"]) == 2
    assert "lowkiq stats --json" in shop.capsys.readouterr().err
