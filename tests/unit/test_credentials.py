"""User and password from a plug: asked for at each sign-in, on every kind of server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pytest
import redis

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.base.errors import BackendDenied, BackendError, BackendUnavailable, ConfigError
from lowkiq_lambda.settings.protocols import Credentials
from lowkiq_lambda.store.server.connection import Client, connect
from lowkiq_lambda.store.server.credentials import LONGEST
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translate
from lowkiq_lambda.store.shard.keys import ShardRef, notification_channel
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.servers import Cluster, MakeServer, ManagedCache, SentinelSetup, Server, TlsProxy
from tests.kit.waiting import eventually

KINDS: Final = ("server", "tls", "sentinel", "cluster", "tls cluster")


class Login:
    """A plug whose password changes with those of the servers; it counts how often it is asked."""

    def __init__(self, admins: list[redis.Redis]) -> None:
        self._admins = admins
        self.user = f"user-{uuid4().hex}"
        self.password = ""
        self.asked = 0
        self.change()

    def __call__(self) -> tuple[str, str]:
        """What is plugged in."""
        self.asked += 1
        return self.user, self.password

    def change(self) -> None:
        """Let the servers know another password; who is signed in stays so."""
        self.password = uuid4().hex
        for admin in self._admins:
            admin.execute_command("ACL", "SETUSER", self.user, "reset", "on", f">{self.password}", "+@all", "~*", "&*")

    def cut(self) -> None:
        """End the user's connections."""
        for admin in self._admins:
            admin.client_kill_filter(_type="normal", user=self.user)

    def connections(self) -> list[str]:
        """The ids of the user's connections."""
        return [
            f"{number} {client['id']}"
            for number, admin in enumerate(self._admins)
            for client in admin.client_list()
            if client["user"] == self.user
        ]


Place: TypeAlias = tuple[str, Login]
MakePlace: TypeAlias = Callable[[str], Place]


@pytest.fixture
def make_place(request: pytest.FixtureRequest) -> Iterator[MakePlace]:
    """The URL of a server of some kind, and a login of a user there."""
    with ExitStack() as stack:

        def make(kind: str) -> Place:
            if kind == "sentinel":
                sentinel: SentinelSetup = request.getfixturevalue("sentinel")
                return sentinel.url, Login([server.admin for server in sentinel.servers])
            if kind == "cluster":
                cluster: Cluster = request.getfixturevalue("cluster")
                return cluster.url, Login([node.admin for node in cluster.nodes])
            if kind == "tls cluster":
                cache: ManagedCache = request.getfixturevalue("managed_cache")
                return cache.url, Login([cache.admin])
            server: Server = request.getfixturevalue("server")
            url = stack.enter_context(TlsProxy(server)).url if kind == "tls" else server.url
            return url, Login([server.admin])

        yield make


def client_of(url: str, credentials: Credentials, clock: ManualClock | None = None) -> Client:
    """A client with a pool of one connection."""
    return connect(url, max_connections=1, timeout=5, pool_timeout=1, credentials=credentials, clock=clock)


def error_of(call: Callable[[], object]) -> BackendError:
    """What a call of a client fails with, as ours."""
    with pytest.raises(REDIS_ERRORS) as caught:
        call()
    return translate(caught.value)


def got(client: Client, key: str) -> Any:
    """What the key holds; a proxy may pass on that a connection was cut a moment later."""

    def get() -> Any:
        with suppress(*REDIS_ERRORS):
            return client.get(key)
        return None

    return eventually(get)


def denied(client: Client, key: str) -> None:
    """Try to read it. Raises BackendDenied; a connection that was cut may only be noticed."""
    try:
        client.get(key)
    except REDIS_ERRORS as error:
        if isinstance(translate(error), BackendDenied):
            raise translate(error) from error


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_signs_in_with_what_is_good_now(kind: str, make_place: MakePlace, queue_name: str) -> None:
    """The plug is asked whenever a connection is opened, so a password that changed costs no error."""
    url, login = make_place(kind)
    with closing(client_of(url, login)) as client:
        client.set(queue_name, "1")
        assert login.connections()
        login.change()
        asked = login.asked
        client.get(queue_name)
        assert login.asked == asked

        login.cut()

        assert b"1" == got(client, queue_name)
        assert login.asked > asked
        assert login.connections()


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_is_opened_anew_before_the_server_ends_it(
    kind: str, make_place: MakePlace, queue_name: str
) -> None:
    """A managed server ends a connection twelve hours after its sign-in: ours are changed before, between two calls."""
    clock = ManualClock()
    url, login = make_place(kind)
    with closing(client_of(url, login, clock)) as client:
        client.set(queue_name, "1")
        first = login.connections()
        clock.advance(LONGEST)
        client.get(queue_name)
        # None is new. The server may notice late that the one which asked a cluster for its nodes was closed.
        kept = login.connections()
        assert kept
        assert set(kept) <= set(first)

        clock.advance(1)
        assert b"1" == client.get(queue_name)

        # The server may notice later that the other one was closed.
        eventually(lambda: len(set(login.connections()) - set(first)) == 1)
        client.get(queue_name)
        assert 11 * 3_600 == LONGEST


class Vault:
    """A plug that keeps what it knows until it is told that the server refused it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._known = login()
        self.searches = 0

    def __call__(self) -> tuple[str, str]:
        """What it knows."""
        return self._known

    def renew(self, refused: tuple[str, str]) -> bool:
        """Look what is good now."""
        self.searches += 1
        self._known = self._login()
        return refused != self._known


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_sign_in_is_made_again_where_the_plug_has_newer(
    kind: str, make_place: MakePlace, queue_name: str
) -> None:
    """A password that was rotated while a client was warm costs no call; what is refused again is told."""
    url, login = make_place(kind)
    vault = Vault(login)
    with closing(client_of(url, vault)) as client:
        client.set(queue_name, "1")
        assert 0 == vault.searches
        login.change()
        login.cut()

        assert b"1" == got(client, queue_name)
        assert 1 <= vault.searches

        login.change()
        login.cut()
        login.password = "wrong"  # noqa: S105 - what it says is what matters
        with pytest.raises(BackendDenied):
            eventually(lambda: denied(client, queue_name))


@pytest.mark.parametrize("kind", ["server", "cluster"])
def test_a_plug_that_fails_is_told_and_asked_again(kind: str, make_place: MakePlace, queue_name: str) -> None:
    """What it raises is in the error; nothing is sent by a connection that has not signed in."""
    url, login = make_place(kind)
    failures: list[Exception] = []

    def plug() -> tuple[str, str]:
        if failures:
            raise failures[-1]
        return login()

    with closing(client_of(url, plug)) as client:
        client.set(queue_name, "1")
        for given, expected, says in (
            (KeyError("vault"), BackendDenied, "`credentials` raised KeyError: 'vault'"),
            (BackendDenied("There are no credentials."), BackendDenied, "There are no credentials."),
            (BackendUnavailable("The vault is slow."), BackendUnavailable, "The vault is slow."),
        ):
            login.cut()
            failures.append(given)
            told = error_of(lambda: client.get(queue_name))
            assert expected is type(told)
            assert says in str(told)
            failures.clear()
            assert b"1" == client.get(queue_name)


def test_a_cluster_that_lets_nobody_in_is_told(cluster: Cluster) -> None:
    """A cluster is asked for its nodes at once, and so what is wrong with the plug shows at once."""

    def plug() -> tuple[str, str]:
        raise BackendDenied("There are no credentials.")

    with pytest.raises(BackendDenied, match=r"^There are no credentials\.$"):
        client_of(cluster.url, plug)


def test_a_plug_may_give_the_password_alone(make_server: MakeServer) -> None:
    """Servers with one password for all have no names of users."""
    server = make_server()
    server.admin.config_set("requirepass", "right")
    with closing(client_of(server.url, lambda: ("", "right"))) as client:
        assert client.ping()


def test_user_and_password_come_from_one_place(server: Server) -> None:
    """A URL with a password beside a plug is refused: nobody could say which counts."""
    for url in ("redis://user:secret@localhost/0", "redis://:secret@localhost/0"):
        with pytest.raises(ConfigError, match="take one away"):
            client_of(url, lambda: ("user", "secret"))
    assert server.admin.ping()


def test_settings_do_not_show_what_is_plugged_in() -> None:
    """Whatever the plug is, neither the settings nor their errors print it."""

    class Telling:
        def __call__(self) -> tuple[str, str]:
            return "user", "hidden"

        def __repr__(self) -> str:
            return "hidden"

    assert "hidden" not in repr(Config(credentials=Telling()))
    with pytest.raises(ConfigError, match="credentials=<tuple> is refused"):
        Config(credentials=("user", "hidden"))  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("kind", ["server", "tls cluster"])
def test_an_app_signs_in_with_the_plug(kind: str, make_place: MakePlace, queue_name: str) -> None:
    """Pushes, drains and looks all go by the plug of the settings."""
    url, login = make_place(kind)
    app = Lowkiq(Config(redis_url=url, credentials=login))
    seen: list[str] = []

    @app.worker(queue_name=queue_name, shards_count=2)
    def note(batch: Batch) -> None:
        seen.extend(batch)

    note.push_many([{"id": number, "payload": number} for number in range(10)])
    assert {"done": 10} == app.drain()
    assert 0 == app.operate.stats()["total"]["length"]
    assert 10 == len(seen)
    assert login.asked >= 2
    close_app(app)


@pytest.mark.parametrize("kind", ["server", "tls cluster"])
def test_a_subscription_signs_in_with_the_plug(kind: str, make_place: MakePlace, queue_name: str) -> None:
    """The connection that hears of pushes is the user's too."""
    url, login = make_place(kind)
    shard = ShardRef(queue_name, 1, 0)
    with Notifications(url, [shard], timeout=5.0, credentials=login) as subscription:
        subscription.open()
        login._admins[0].publish(notification_channel(queue_name), "0")
        heard: list[Any] = eventually(lambda: subscription.receive(0.1).shards)

    assert [shard] == heard
    assert login.asked
