"""A primary with replicas under the watch of Sentinels."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import redis

from tests.kit.servers.server import Server
from tests.kit.servers.started import Started
from tests.kit.waiting import eventually

_TIMEOUT = 40.0
_FAILOVER_TIMEOUT = 3_000
_GIVEN_UP = 15.0
"""Seconds after which a failover that was ordered has come to its end, one way or the other."""

_PERIODS = ("info-period", 250, "publish-period", 250, "tilt-trigger", 500, "tilt-period", 2_000)
_REPLICATION = ["repl-diskless-sync-delay 0", "repl-ping-replica-period 1"]


class SentinelSetup(Started):
    """Servers of one service, one of them the primary that the Sentinels name.

    `down_after` is how many seconds a silent primary counts as alive. `min_replicas` are needed for a primary to take
    writes. A Sentinel looks at the servers every ten seconds, and judges nobody for half a minute after one in which it
    could not run for two seconds. `hurried` ones look four times a second, and judge again after two seconds.
    """

    service = "lowkiq"

    def __init__(
        self,
        *,
        sentinels: int = 1,
        replicas: int = 1,
        down_after: float = 1.0,
        min_replicas: int = 0,
        hurried: bool = True,
    ) -> None:
        server_settings = [*_REPLICATION, f"min-replicas-to-write {min_replicas}"]
        first = Server(settings=server_settings)
        self.servers: list[Server] = [first, *(_Replica(first, server_settings) for _ in range(replicas))]
        settings = {
            "down-after-milliseconds": int(down_after * 1000),
            "failover-timeout": _FAILOVER_TIMEOUT,
            "parallel-syncs": replicas,
        }
        self.sentinels = [
            _Sentinel(self.service, first, sentinels // 2 + 1, settings, hurried=hurried) for _ in range(sentinels)
        ]

    @property
    def sentinel_addresses(self) -> list[tuple[str, int]]:
        """Host and port of each Sentinel."""
        return [sentinel.address for sentinel in self.sentinels]

    @property
    def url(self) -> str:
        """What a client is given."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.sentinel_addresses)
        return f"redis+sentinel://{hosts}/{self.service}"

    @property
    def primary(self) -> Server:
        """The server that the Sentinels name now."""
        port = _announced_port(self._living_sentinel().admin, self.service)
        return next(server for server in self.servers if server.port == port)

    @property
    def replicas(self) -> list[Server]:
        """The other servers, dead ones too."""
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    def start(self) -> Self:
        """Start all and wait until the Sentinels could fail over."""
        for server in self.servers:
            server.start()
        # What a Sentinel sees first it believes until it looks again.
        eventually(self._are_linked, timeout=_TIMEOUT, what="replicas that follow their primary")
        for sentinel in self.sentinels:
            sentinel.start()
        self.heal()
        return self

    def heal(self) -> None:
        """Start what ended, thaw what is frozen, and wait until the Sentinels could fail over."""
        for server in (*self.servers, *self.sentinels):
            server.thaw()
            if not server.is_running:
                server.start()
        eventually(self._is_healthy, timeout=_TIMEOUT, what="a primary with all its replicas")

    def failover(self) -> Server:
        """Order a failover, both sides alive; returns the new primary when it is announced and writable."""
        before = self.primary
        eventually(self._order_failover, timeout=_TIMEOUT, what="a Sentinel's consent to fail over")
        with contextlib.suppress(AssertionError):
            return self.await_other_than(before, _GIVEN_UP)
        # It was given up, as it is where the machine stands still for a while.
        self._order_failover()
        return self.await_other_than(before)

    def kill_primary(self) -> Server:
        """Kill the primary; returns the new one when it is announced and writable."""
        before = self.primary
        before.kill()
        return self.await_other_than(before)

    def await_other_than(self, before: Server, timeout: float = _TIMEOUT) -> Server:
        """The new primary when it is announced and writable."""
        eventually(
            lambda: self.primary is not before and _is_primary(self.primary),
            timeout=timeout,
            what="another primary",
        )
        return self.primary

    def close(self) -> None:
        """End all and remove their folders."""
        for server in (*self.sentinels, *self.servers):
            server.close()

    def _living_sentinel(self) -> Server:
        return next(sentinel for sentinel in self.sentinels if sentinel.is_running)

    def _order_failover(self) -> bool:
        try:
            self._living_sentinel().admin.execute_command("SENTINEL FAILOVER", self.service)
        except redis.ResponseError:
            return False
        return True

    def _are_linked(self) -> bool:
        return all(_link(server) == "up" for server in self.servers[1:])

    def _is_healthy(self) -> bool:
        with contextlib.suppress(redis.RedisError, StopIteration):
            primary = self.primary
            return _is_primary(primary) and all(self._checks(primary))
        return False

    def _checks(self, primary: Server) -> Iterator[bool]:
        replicas = [server for server in self.servers if server is not primary]
        yield all(_link(replica) == "up" for replica in replicas)
        for sentinel in self.sentinels:
            state = _state(sentinel.admin, self.service)
            yield _announced_port(sentinel.admin, self.service) == primary.port
            yield state["flags"] == "master"
            yield int(state["num-other-sentinels"]) == len(self.sentinels) - 1
            yield _known_replicas(sentinel.admin, self.service) == {replica.port for replica in replicas}


class _Replica(Server):
    def __init__(self, first: Server, settings: Sequence[str]) -> None:
        super().__init__(settings=settings)
        self._first = first

    def configuration(self) -> list[str]:
        """Follows the first primary, until the Sentinels order otherwise."""
        return [*super().configuration(), f"replicaof {self._first.host} {self._first.port}"]


class _Sentinel(Server):
    def __init__(self, service: str, first: Server, quorum: int, settings: Mapping[str, int], *, hurried: bool) -> None:
        super().__init__()
        self._hurried = hurried
        self._service = service
        self._first = first
        self._quorum = quorum
        self._watch = settings

    def configuration(self) -> list[str]:
        """What to watch; later what it wrote itself, as it keeps in that file what it learnt."""
        path = self.data_dir / "server.conf"
        if path.exists():
            return path.read_text().splitlines()
        return [
            f"bind {self.host}",
            f"port {self.port}",
            f"sentinel monitor {self._service} {self._first.host} {self._first.port} {self._quorum}",
            *(f"sentinel {name} {self._service} {value}" for name, value in self._watch.items()),
        ]

    def start(self) -> Self:
        """Start it, and, where it is to hurry and lets one, shorten its periods."""
        super().start()
        if self._hurried:
            with contextlib.suppress(redis.ResponseError):
                self.admin.execute_command("SENTINEL DEBUG", *_PERIODS)
        return self

    def arguments(self) -> list[str]:
        """Makes a Sentinel of the server."""
        return ["--sentinel"]

    def change_port(self) -> None:
        """Begin anew: the file names the old port."""
        super().change_port()
        (self.data_dir / "server.conf").unlink()


def _link(replica: Server) -> str:
    return str(replica.admin.info("replication").get("master_link_status"))


def _is_primary(server: Server) -> bool:
    with contextlib.suppress(redis.RedisError):
        return str(server.admin.info("replication")["role"]) == "master"
    return False


def _announced_port(sentinel: redis.Redis, service: str) -> int:
    # GET-MASTER-ADDR-BY-NAME names the new primary earlier, in the middle of a failover, than this does.
    return int(_state(sentinel, service)["port"])


def _state(sentinel: redis.Redis, service: str) -> dict[str, str]:
    return _fields(sentinel.execute_command("SENTINEL MASTER", service))


def _known_replicas(sentinel: redis.Redis, service: str) -> set[int]:
    replicas = (_fields(found) for found in sentinel.execute_command("SENTINEL REPLICAS", service))
    return {
        int(replica["port"])
        for replica in replicas
        if replica["flags"] == "slave" and replica["master-link-status"] == "ok"
    }


def _fields(found: Any) -> dict[str, str]:
    pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
    return {_text(name): _text(value) for name, value in pairs}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
