"""Messages between the parent and a child: lines through a pair of sockets.

The parent begins with an `Order`, which has all that the child needs to run, and goes on with words; the child sends a
`Status` each second. For either side, the end of the lines means that the other side is gone.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.local.logs import LogFormat, LogLevel
from lowkiq_lambda.local.overrides import Overrides
from lowkiq_lambda.views.processes import ProcessState

Word: TypeAlias = Literal["stop", "now", "quiet", "traces"]
"""`stop`: as TERM does; `now`: as a second one; `quiet`: as TSTP; `traces`: as TTIN."""
WORDS: Final[frozenset[Word]] = frozenset(("stop", "now", "quiet", "traces"))

FAILED: Final = 1
"""A job was given back unfinished, a child was killed, or Redis refused something."""
MISUSED: Final = 2
"""The settings or the app cannot work."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon that a child is to run. `number` counts from 0 to `processes` - 1; `folder` is for traces.

    `nonce_prefix`: what the nonces of its leases begin with, and those of no other process; the parent makes it.
    """

    app: str
    number: int
    processes: int
    nonce_prefix: str = ""
    folder: str
    overrides: Overrides
    log_level: LogLevel
    log_format: LogFormat


class Status(msgspec.Struct, frozen=True):
    """The state of a child; `memory`: resident, in bytes; `visits`: how many shards it drains at the moment."""

    state: ProcessState
    memory: int
    visits: int


def worse(code: int, returned: int) -> int:
    """The worse of an exit code and of the return code of a process, which is below 0 for a signal."""
    return max(code, FAILED if returned < 0 else returned)
