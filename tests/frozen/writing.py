"""Writes the data of this version, which the tests of later ones read: `python -m tests.frozen.writing FOLDER`.

The clock is moved by hand and nothing is drawn at random, so the same code writes the same bytes.
"""

import json
import os
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from lowkiq_lambda.base.forks import this_process
from lowkiq_lambda.engine import thread_slots
from lowkiq_lambda.engine.heartbeat import VERSION
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.operate.inspect import activity
from lowkiq_lambda.operate.lateness.duty import watch_runner
from lowkiq_lambda.reshard.duty import resharding_of
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession, LeaseSettings
from lowkiq_lambda.tasks.duty import task_runner
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Doing, Process
from tests.frozen.answers import Visit, answers, described, seen
from tests.frozen.messages import messages_of
from tests.frozen.names import public_names
from tests.frozen.redis_text import lines_of
from tests.kit.apps import close_app
from tests.kit.servers import Server

if TYPE_CHECKING:
    from lowkiq_lambda import Lowkiq, Worker

FOLDER: Final = Path(__file__).parents[1] / "data" / VERSION
"""The data of this version; the folders beside it are those of older ones, which never change."""
START: Final = 1_800_000_000.0
"""Friday, 15 January 2027, 08:00 UTC."""
_PATIENCE: Final = 10.0
_DAY: Final = 86_400.0


def declaration(folder: Path) -> ModuleType:
    """The module that declares the app, anew."""
    spec = spec_from_file_location("frozen_declaration", folder / "declaration.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def nothing_at_random() -> Iterator[None]:
    """What is drawn, measured or asked of the machine is the same each time."""
    drawn = count()

    def urandom(size: int) -> bytes:
        return b"".join(sha256(b"%d" % next(drawn)).digest() for _ in range(0, size, 32))[:size]

    with ExitStack() as stack:
        for where, name, value in (
            (os, "urandom", urandom),
            (random, "_urandom", urandom),
            (os, "getpid", lambda: 4711),
            (this_process, "pid", 4711),
            (socket, "gethostname", lambda: "packer-1"),
            (thread_slots, "thread_time", lambda: 0.0),
            (activity, "_OWN_KEY", b"k" * 32),
        ):
            stack.enter_context(patch.object(where, name, value))
        yield


class Written:
    """An app with data of each kind on a server, and what its handlers have yet to get."""

    def __init__(self, folder: Path, url: str) -> None:
        self.clock = ManualClock(START)
        self.module = declaration(folder)
        self.app: Lowkiq = self.module.new_app(url, self.clock)
        self.workers: dict[str, type[Worker[Any]]] = {worker.queue_name: worker for worker in self.app.workers}
        self.left: dict[str, dict[str, list[Any]]] = {name: {} for name in self.workers}
        """Payloads by queue and id, in the order in which they will be handed over."""

    def write(self) -> None:
        """Write everything, up to a moment at which all kinds are there."""
        for step in (
            self._run_some,
            self._fail_some,
            self._wait,
            self._follow_a_task,
            self._serve_tenants,
            self._schedule,
            self._operate,
            self._repair,
            self._move,
            self._hold,
            self._watch,
        ):
            self.clock.advance(60.0)
            step()

    def _push(self, queue: str, job_id: str, *payloads: Any, **options: Any) -> None:
        """Push payloads that will wait, in their order."""
        self.workers[queue].push_many([{"id": job_id, "payload": payload, **options} for payload in payloads])
        self.left[queue].setdefault(job_id, []).extend(payloads)

    def _drain(self, *broken: str) -> None:
        self.module.BROKEN.update(broken)
        self.app.drain()
        for queue, job_id, payload in self.module.HANDED:
            if payload in self.left[queue].get(job_id, ()):
                self.left[queue][job_id].remove(payload)
        self.module.HANDED.clear()
        self.module.BROKEN.clear()

    def _run_some(self) -> None:
        for number in range(3):
            self._push("Orders", f"done-{number}", {"total": number}, headers={"trace": "00-ab"})
        self._push("Latest", "done", {"version": 7}, score=7)
        self._drain()
        self.clock.advance(120.0)
        self._drain()

    def _fail_some(self) -> None:
        self._push("Orders", "dead", {"n": 1}, {"n": 2})
        self._push("Orders", "dead-too", "ünïcödé €")
        self._push("Import", "dead-rows", 3)
        for _ in range(2):
            self._drain("dead", "dead-too", "dead-rows")
            self.clock.advance(3_600.0)
        self._push("Orders", "retried", {"n": 1}, {"n": 2}, {"n": 3})
        self._push("Blocking", "blocked", 1, 2, 2)
        self._push("Import", "rows", 5)
        self._drain("retried", "blocked", "rows")
        # Both did their first row.
        self.left["Import"] = {"dead-rows": [1, 2], "rows": [1, 2, 3, 4]}

    def _wait(self) -> None:
        later = {"delay": _DAY}
        self._push("Orders", "one", {"status": "paid", "total": 12.5, "none": None, "yes": True}, **later)
        self._push("Orders", "few", [1], "two", 3, **later)
        self._push("Orders", "many", *({"n": number, "text": "x" * 40} for number in range(12)), **later)
        self._push("Orders", "touched", {"same": 1}, **later)
        self.workers["Orders"].push("touched", {"same": 1}, delay=_DAY)
        self._push("Orders", "headed", {"h": 1}, headers={"trace": "00-cd", "user": "Zoë"}, key="k-1", **later)
        self.workers["Orders"].push("headed", {"h": 2}, key="k-1")
        self._push("Orders", "expiring", {"e": 1}, expires_in=30 * _DAY, **later)
        self.workers["Orders"].push("expired", {"e": 0}, expires_in=60, delay=_DAY)
        self._push("Orders", "scored", {"v": 9_007_199_254_740_991}, score=-1.5, **later)
        self._push("Orders", "scored", {"v": 2}, score=2.0**52, **later)
        self._push("Limited", "rated-0", 0)
        for number in range(1, 5):
            self._push("Limited", f"rated-{number}", number)
        self._push("Prices", "sku-1", {"sku": "a", "cents": 5}, {"sku": "b", "cents": 7}, **later)
        self.left["Prices"]["sku-1"] = [["a", 5], ["b", 7]]
        self._drain()

    def _follow_a_task(self) -> None:
        orders = self.workers["Orders"]
        with self.app.task("Publish", on_complete=(orders, {"done": True})) as task:
            task.push_many(orders, [{"id": f"item-{n}", "payload": n, "item": f"row {n}"} for n in range(2)])
            task.push(orders, "item-refused", 3, item="row 3")
            task.push(orders, "item-late", 4, item="row 4", delay=_DAY)
        self.left["Orders"]["item-late"] = [4]
        self._drain("item-refused")

    def _serve_tenants(self) -> None:
        self.app.operate(self.workers["Spread"]).pause(tenant="acme")
        for queue in ("Spread", "Home"):
            for tenant in ("acme", "globex"):
                for number in range(3):
                    self._push(queue, f"{tenant}:{number}", {"of": tenant, "n": number})
        self._drain()

    def _schedule(self) -> None:
        self.app.schedules.put("made", self.workers["Orders"], id="made", every=900, payload={"made": 1})
        self.app.schedules.put("off", self.workers["Orders"], id="off", every=900)
        self.app.schedules.disable(self.workers["Orders"], "off")
        self.app.schedules.tick()
        self.clock.advance(600.0)
        self.app.schedules.duty_runner(self.clock).run_due(lambda: _PATIENCE)
        self.left["Orders"] |= {"poll": [""], "made": [{"made": 1}]}

    def _operate(self) -> None:
        """As people do it: each act leaves a line of activity."""
        for job_id in ("deleted", "killed", "paused", "edited", "cancelled"):
            self._push("Orders", job_id, {"of": job_id}, delay=_DAY)
        for gone in ("deleted", "cancelled"):
            del self.left["Orders"][gone]
        orders, why = {"queue": "Orders"}, {"reason": "the ERP moved"}
        self._act("/waiting/delete", orders | why | {"ids": ["deleted"]})
        self._act("/waiting/kill", orders | why | {"ids": ["killed"]})
        self._act("/jobs/cancel", orders | why | {"ids": ["cancelled"]})
        self._act("/jobs/pause", orders | why | {"ids": ["paused"], "seconds": 3_600})
        (stored,) = Visit(self.app, self.clock).get("/job/payloads?queue=Orders&id=edited")["payloads"]
        edited = {"id": "edited", "arrival": stored["arrival"], "payload": {"of": "ada"}}
        self._act("/job/edit", orders | why | edited)
        self.left["Orders"]["edited"] = [{"of": "ada"}]
        self._act("/queue/pause", {"queue": "Prices", "seconds": 3_600} | why)
        self._act("/limits/set", {"queue": "Limited", "max_running": 1} | why)
        self._act("/views/save", {"name": "late", "address": "errors?by=line"})

    def _act(self, path: str, fields: dict[str, Any]) -> None:
        """Ask the API for an act, a second after the one before."""
        self.clock.advance(1.0)
        Visit(self.app, self.clock).post(path, fields)

    def _repair(self) -> None:
        """Somebody spoilt a record, which is set aside."""
        shard = self.app.core.queues.agreed(self.workers["Home"]).shards[1]
        self.app.core.backend.client.hset(shard.key("jobs"), "spoilt", b"\xff")
        self.app.operate(self.workers["Home"]).repair()

    def _move(self) -> None:
        for number in range(12):
            self._push("Moving", f"moved-{number}", number, number + 100, delay=_DAY)
        move = resharding_of(self.app.core, self.workers["Moving"])
        groups = move.begin(6).groups
        move.go_on(lambda *_: None, lambda: len(move.layout.left) - groups // 2)

    def _hold(self) -> None:
        """Two holders died, one after the other: what the first had is suspect, and of that the second had one."""
        for job_id in ("held-1", "held-2"):
            self._push("Held", job_id, {"of": job_id}, {"more": 1})
        shard = self.app.core.queues.agreed(self.workers["Held"]).shards[shard_for("held-1", 1)]
        terms = LeaseSettings(30.0, "min", MorgueLimits(), b"crashed")
        for nonce in ("a" * 24, "b" * 24):
            LeaseSession(self.app.core.backend, shard, nonce, terms).acquire(
                "packer-2:17", ClaimLimits(10, 100, 100_000), _PATIENCE
            )
            self.clock.advance(31.0)
            self.app.core.backend.client.delete(shard.key("lease"))
        self._push("Latest", "order", {"version": 8}, score=8)
        self.workers["Latest"].push("order", {"version": 6}, score=6)

    def _watch(self) -> None:
        for _ in range(2):
            self.clock.advance(60.0)
            for runner_of in (task_runner, watch_runner):
                runner_of(self.app.core, self.clock).run_due(lambda: _PATIENCE)
        doing = Doing(queue="Held", shard=0, since=self.clock.time() - 60.0, count=1, ids=("held-1",))
        process = Process(
            host="packer-2",
            pid=17,
            kind="daemon",
            version=VERSION,
            release="r1",
            since=START,
            threads=5,
            state="running",
            doing=(doing,),
        )
        HeartbeatSender(self.app.core.backend, "packer-2:17:abc").send(process)
        self._act("/process/quiet", {"id": "packer-2:17:abc", "reason": "deploy"})


def write(server: Server, folder: Path) -> dict[str, list[str]]:
    """The lines of each file, as this code writes them."""
    with nothing_at_random():
        written = Written(folder, server.url)
        written.write()
        records = [*lines_of(server.admin)]
        views = json.dumps(seen(written.app, written.clock), indent=1, sort_keys=True).splitlines()
        looks = answers(written.app, written.clock)
        messages = messages_of(written.app, written.clock)
        close_app(written.app)
    left = [
        json.dumps({"queue": queue, "id": job_id, "payloads": payloads})
        for queue, ids in written.left.items()
        for job_id, payloads in ids.items()
        if payloads
    ]
    return {
        "redis.jsonl": records,
        "handed.jsonl": left,
        "seen.json": views,
        "messages.json": json.dumps(messages, indent=2).splitlines(),
        "api.txt": described(),
        "names.txt": public_names(),
        "answers.txt": looks,
    }


if __name__ == "__main__":
    with Server() as own:
        for name, lines in write(own, FOLDER).items():
            (FOLDER / name).write_text("".join(f"{line}\n" for line in lines))
