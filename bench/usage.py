"""What the server says that it did."""

from dataclasses import dataclass
from typing import Any, Final, Self

import redis

MICROSECONDS: Final = 1_000_000.0
_OWN: Final = ("info", "config|resetstat", "flushall")


@dataclass(frozen=True, slots=True)
class Usage:
    """Since the last reset: calls by command, those inside scripts too, and how often the server read from a client.

    Reads are round trips, but for requests of many kilobytes, which take several.
    """

    commands: dict[str, int]
    reads: int

    @classmethod
    def of(cls, admin: redis.Redis) -> Self:
        """As the server counts now."""
        commands = {
            name.removeprefix("cmdstat_"): int(stat["calls"]) for name, stat in _info(admin, "commandstats").items()
        }
        for name in _OWN:
            commands.pop(name, None)
        return cls(commands, int(_info(admin, "stats")["total_reads_processed"]))

    @property
    def script_calls(self) -> int:
        """Calls of scripts without probes, which alone ask how long a lease lasts."""
        scripts = self.commands.get("evalsha", 0) + self.commands.get("eval", 0)
        return scripts - self.commands.get("pttl", 0)


def reset(admin: redis.Redis) -> None:
    """Begin to count anew."""
    admin.config_resetstat()


def scripts(admin: redis.Redis) -> tuple[int, float]:
    """Calls of scripts by their hash, and the microseconds of one, on the average."""
    stat = _info(admin, "commandstats").get("cmdstat_evalsha", {"calls": 0, "usec_per_call": 0.0})
    return int(stat["calls"]), float(stat["usec_per_call"])


def used_memory(admin: redis.Redis) -> int:
    """Bytes."""
    return int(_info(admin, "memory")["used_memory"])


def processor_time(admin: redis.Redis) -> float:
    """Seconds that the server has had of the processor."""
    used = _info(admin, "cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


def _info(admin: redis.Redis, section: str) -> dict[str, Any]:
    found: dict[str, Any] = admin.info(section)
    return found
