"""Apps with a namespace each, whose users of the server may touch that alone."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.servers import Server

RIGHTS: Final = (
    "-@all +@read +@write +@scripting +@connection -@dangerous "
    "+publish +subscribe +unsubscribe +info +time +cluster|slots"
)
"""What docs/redis.md gives a user beside keys and channels."""


class Confined:
    """Apps of one namespace each, whose user of the server may touch keys and channels of that namespace alone."""

    def __init__(self, server: Server, clock: ManualClock, queue_name: str, stack: ExitStack) -> None:
        self._server = server
        self._clock = clock
        self._name = queue_name.removeprefix("queue-")
        self._stack = stack
        self._users: list[str] = []

    def app(self, namespace: str) -> Lowkiq:
        """An app, and its user."""
        namespace = f"{namespace}.{self._name}"
        url = self._server.add_user(namespace, f"~{namespace}:*", f"&{namespace}:*", *RIGHTS.split())
        self._users.append(namespace)
        app = Lowkiq(Config(redis_url=url, namespace=namespace, redis_timeout=1.0), clock=self._clock)
        return self._stack.enter_context(closing_app(app))

    def refusals(self) -> list[tuple[str, str]]:
        """The keys and channels that the server has refused these users: also in calls whose errors nobody sees."""
        entries = [entry for entry in self._server.admin.acl_log() if entry["username"] in self._users]
        return [(str(entry["reason"]), str(entry["object"])) for entry in entries if entry["reason"] != "command"]


@contextmanager
def confining(server: Server, clock: ManualClock, queue_name: str) -> Iterator[Confined]:
    """Makes such apps on the server; by the end of the block it has refused them no key and no channel."""
    with ExitStack() as stack:
        made = Confined(server, clock, queue_name, stack)
        yield made
        assert [] == made.refusals()
