"""Calls of limit.lua at times that a test chooses."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError

from lowkiq_lambda.store.shard.keys import LIMITER, LimiterRef
from lowkiq_lambda.store.shard.scripts import script
from tests.kit.servers import Server


class Limit(NamedTuple):
    """A limit as the script takes it."""

    kind: str
    most: int
    per: float


@dataclass
class LimiterScript:
    """One key of a limiter on a server."""

    server: Server
    name: str
    limit: Limit
    slack: float = 0.0
    patience: float = 0.0
    measured: bool = False

    def __call__(self, now: float, points: int = 1, op: str = "take", **more: Any) -> list[Any]:
        """The reply, with numbers as numbers. `more`: `who`, `nonce`, `date`, `doubt`."""
        code, ref = script("limit", (LIMITER,)), LimiterRef(self.name, "")
        keys = ref.some(code.pick)
        args = (
            *("1", f"{now:.6f}", "1" if self.measured else "0", repr(more.get("doubt", 0.0)), op, self.limit.kind),
            *(self.limit.most, repr(self.limit.per), points, repr(self.slack), more.get("who", "")),
            *(more.get("nonce", ""), repr(more.get("date", 0.0)), repr(self.patience)),
        )
        try:
            status, *rest = self.server.admin.evalsha(code.sha, len(keys), *keys, *args)
        except NoScriptError:
            status, *rest = self.server.admin.eval(code.source, len(keys), *keys, *args)
        return [status.decode(), *map(float, rest)]
