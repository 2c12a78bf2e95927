"""A run: the shop and the ERP in this process, the web app in one of its own, and the report at the end."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from examples.erp_sync.erp import Erp
from examples.erp_sync.http import Unreachable, ask, free_port, served
from examples.erp_sync.knobs import Knobs
from examples.erp_sync.report import Report
from examples.erp_sync.shop import Shop, order_id, plan

PATIENCE = 120.0
"""Seconds for the web app to start, or for the queues to come to their end."""
LOOK_INTERVAL = 0.2
LEASE = "3"
"""Seconds for which a killed process blocks its shards, where the environment says nothing else."""


class RunError(Exception):
    """The run cannot go on."""


class WebApp:
    """The web app, in a process that can be killed and started again."""

    def __init__(self, port: int, environment: dict[str, str], log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.kills = 0
        arguments = ["uvicorn", "examples.erp_sync.web:web", "--port", str(port), "--log-level", "warning"]
        self._command = [sys.executable, "-m", *arguments]
        self._environment = environment
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        self._process = self._started()

    def kill(self) -> None:
        """As a machine that loses its power; and start it again."""
        self.kills += 1
        self._process.kill()
        self._process.wait()
        self._process = self._started()

    def stop(self) -> None:
        """Let it come to its end; its embedded server ends with it."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def status(self) -> dict[str, Any] | None:
        """What is left to do; None while nobody answers. Raises RunError where the process has ended."""
        if self._process.poll() is not None:
            raise RunError(f"the web app has ended, with exit code {self._process.returncode}: see {self._log}")
        try:
            answer = ask("GET", f"{self.url}/status")
        except Unreachable:
            return None
        return dict(answer.body) if answer.status == HTTPStatus.OK else None

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            # In a session of its own: a signal to the whole group would end it before it stops its embedded server.
            return subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )


def run(knobs: Knobs, stop: Event, say: Callable[[str], object]) -> Report:
    """Run it until all is quiet. Raises RunError, and KeyboardInterrupt where `stop` is set."""
    poison = [order_id(number) for number in range(knobs.poison)]
    shop, erp = Shop(knobs), Erp(knobs.erp_rate, knobs.failures, poison, knobs.seed, latency=knobs.latency)
    with served(shop.app) as shop_url, served(erp.app) as erp_url, _web(knobs, shop_url, erp_url, say) as web:
        before = _wait(web, stop, lambda _: True)
        if before["waiting"] or before["morgue"]:
            raise RunError("the server has jobs of an earlier run: empty it, or name another")
        ask("POST", f"{web.url}/catalogue/exports")
        kill_at = [knobs.seconds * (n + 1) / (knobs.kills + 1) for n in range(knobs.kills)]

        def tick(seconds: float) -> None:
            if kill_at and seconds >= kill_at[0]:
                kill_at.pop(0)
                web.kill()

        shop.live(plan(knobs, time.time()), web.url, stop, tick)
        _wait(web, stop, _is_quiet)
        # The night comes: it finds what the shop has lost.
        ask("POST", f"{web.url}/night")
        end = _wait(web, stop, _is_quiet)
        report = Report(shop, erp, poison, end["morgue"], web.kills, end["moves"])
        for line in report.lines():
            say(line)
        if knobs.serve:
            say("Ctrl-C ends it")
            stop.wait()
    return report


@contextmanager
def _web(knobs: Knobs, shop_url: str, erp_url: str, say: Callable[[str], object]) -> Iterator[WebApp]:
    port, password = knobs.port or free_port(), secrets.token_urlsafe(9)
    with TemporaryDirectory(prefix="erp-sync-", ignore_cleanup_errors=True) as folder:
        defaults = {
            "LOWKIQ_REDIS_URL": f"embedded:{folder}",
            "LOWKIQ_LEASE_TTL": LEASE,
            "LOWKIQ_DASHBOARD_PASSWORD": password,
            "ORDERS_RATE": str(knobs.orders_rate),
        }
        environment = {**defaults, **os.environ, "SHOP_URL": shop_url, "ERP_URL": erp_url}
        web = WebApp(port, environment, Path(knobs.log))
        shown = password if environment["LOWKIQ_DASHBOARD_PASSWORD"] == password else "of the environment"
        say(f"dashboard  {web.url}/lowkiq/  password {shown}")
        say(f"log        {knobs.log}")
        try:
            yield web
        finally:
            web.stop()


def _is_quiet(status: dict[str, Any]) -> bool:
    return not status["waiting"]


def _wait(web: WebApp, stop: Event, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    gives_up_at, status = time.monotonic() + PATIENCE, None
    while time.monotonic() < gives_up_at:
        status = web.status()
        if status is not None and until(status):
            return status
        if stop.wait(LOOK_INTERVAL):
            raise KeyboardInterrupt
    raise RunError(f"the web app is not quiet after {PATIENCE:.0f} seconds: {status}")
