"""`embedded:` in several programs of a project: one server for all, for as long as one of them lives."""

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.kit.servers.ports import free_port
from tests.kit.waiting import eventually
from tests.local.programs import Project, environment

WEB = """
from jobs import Greet

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    Greet.push_many([{"id": scope["path"][1:]}])
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b""})
"""
PUSH = "Greet.push_many([{'id': %r}]) and None"


def test_a_script_a_web_app_and_a_daemon_share_a_server(project: Project) -> None:
    """Each names `embedded:` and nothing else: what a script and a web server push is performed by the daemon."""
    (project.root / "web.py").write_text(WEB)
    port = free_port()
    web = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "web:app", "--port", str(port), "--log-level", "warning"],
        cwd=project.root,
        env=environment(),
    )
    try:
        daemon = project.daemon()
        push = "from jobs import Greet; Greet.push_many([{'id': 'script'}])"
        subprocess.run([sys.executable, "-c", push], cwd=project.root, env=environment(), check=True)

        def get() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/web", timeout=30) as answer:
                    return bool(answer.status == 202)
            except OSError:
                return False

        eventually(get, timeout=30, what="the web server's answer")
        project.await_greeted("script", "web")
        daemon.send(signal.SIGTERM)
        assert 0 == daemon.exit_code()
        assert project.server_lives()
    finally:
        web.send_signal(signal.SIGINT)
        web.wait(30)
    assert not project.server_lives()


def test_a_program_below_finds_the_server_of_the_project(project: Project) -> None:
    """Whoever starts a program in another folder of the project gets the same server, and what waits there."""
    (project.root / "shop").mkdir()
    above, below = project.prompt(), project.prompt(below="shop")

    above.run(PUSH % "Ada")

    assert above.run("server()") == below.run("server()")
    assert {"done": 1} == below.run("app.drain(60)")
    assert not (project.root / "shop" / ".lowkiq").exists()


def test_a_program_stays_with_the_server_that_it_found(project: Project) -> None:
    """A change of the current folder, to another project even, takes nobody to another server."""
    prompt = project.prompt()
    prompt.run(PUSH % "Ada")

    prompt.run(f"import os; os.mkdir({str(project.root / 'other')!r}); os.chdir({str(project.root / 'other')!r})")
    prompt.run("open('pyproject.toml', 'w').close()")

    assert {"done": 1} == prompt.run("app.drain(60)")


def test_all_who_begin_at_once_get_one_server(project: Project) -> None:
    """Four processes of eight threads each start it together: one is started, and each process has one seat."""
    prompts = [project.prompt() for _ in range(4)]
    threads = "from concurrent.futures import ThreadPoolExecutor as T"
    with_app = (
        "[*T(8).map(lambda _: Lowkiq(Config(redis_url='embedded:')).core.backend.client.info()['process_id'], "
        "range(8))]"
    )
    for prompt in prompts:
        prompt.run(threads)

    for prompt in prompts:
        prompt.type(with_app)
    pids = {pid for prompt in prompts for pid in prompt.answer()}

    assert {project.server_pid()} == pids
    with project.folder.exclusive():
        assert sorted(prompt.pid for prompt in prompts) == sorted(project.folder.users())


def test_a_process_is_told_once_which_server_it_uses(project: Project) -> None:
    """A line names family, version, program and folder, once, whatever the process does then; but no password."""
    prompt = project.prompt()
    prompt.run("import logging; logging.basicConfig(level='INFO', format='%(message)s')")

    prompt.run(PUSH % "Ada")
    prompt.run("app.drain(60)")
    version = prompt.run("(info := app.core.backend.client.info()).get('valkey_version') or info['redis_version']")

    program = prompt.run("app.core.backend.client.info()['executable']")
    told = f"Embedded server, for development: Valkey {version} ({program}), data in {project.folder.path}."
    assert [told] == [line for line in prompt.log.splitlines() if line.startswith("Embedded server")]
    access = project.folder.read_access()
    assert access is not None
    assert access.password not in prompt.log


def test_the_daemon_tells_the_line_that_lets_others_in(project: Project, tmp_path: Path) -> None:
    """A daemon without a URL prints what to export; whoever does so, in any folder, pushes to it."""
    project.write()
    text = (project.root / "jobs.py").read_text().replace("redis_url='embedded:', ", "")
    (project.root / "jobs.py").write_text(text.replace("Config(", "Config.from_env(os.environ, "))
    (tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    daemon = project.daemon()
    eventually(lambda: "export LOWKIQ_REDIS_URL=embedded:" in daemon.log, timeout=30)
    (line,) = [line for line in daemon.log.splitlines() if "export " in line]

    url = line.partition("export LOWKIQ_REDIS_URL=")[2]
    project.prompt(below="elsewhere", LOWKIQ_REDIS_URL=url).run(PUSH % "Ada")

    project.await_greeted("Ada")
    access = project.folder.read_access()
    assert access is not None
    assert access.password not in daemon.log


def test_notifications_of_an_embedded_server_are_received(project: Project) -> None:
    """A push starts the daemon's work at once, long before it would look by itself."""
    project.write(poll_interval=600.0)
    daemon, prompt = project.daemon(), project.prompt()
    prompt.run(PUSH % "first")
    project.await_greeted("first")

    prompt.run(PUSH % "second")

    project.await_greeted("first", "second")
    assert "notifications are not received" not in daemon.log


def test_who_uses_the_server_keeps_it_when_the_daemon_stops(project: Project) -> None:
    """The end of the daemon is the end of its own use; the server of those who stay is the same."""
    daemon, prompt = project.daemon(), project.prompt()
    prompt.run(PUSH % "Ada")
    project.await_greeted("Ada")
    before = prompt.run("server()")

    daemon.send(signal.SIGTERM)
    assert 0 == daemon.exit_code()

    prompt.run(PUSH % "Grace")
    assert before == prompt.run("server()")


def test_a_server_that_all_have_left_is_found_again(project: Project) -> None:
    """Who comes later starts it with its data, its port and its password."""
    first = project.prompt()
    first.run(PUSH % "Ada")
    url = first.run("app.core.connections.url")
    first.end()
    assert not project.server_lives()

    later = project.prompt()

    assert {"done": 1} == later.run("app.drain(60)")
    assert url == later.run("app.core.connections.url")


def test_a_killed_server_is_back_for_all_who_use_it(project: Project) -> None:
    """After a SIGKILL one of the users starts it again, on its port and with its data: a push just goes on."""
    daemon, prompts = project.daemon(), [project.prompt() for _ in range(3)]
    for number, prompt in enumerate(prompts):
        prompt.run(PUSH % f"before-{number}")
    before = {(prompt.run("server()"), prompt.run("app.core.connections.url")) for prompt in prompts}
    project.await_greeted("before-0", "before-1", "before-2")

    project.kill_server()
    for number, prompt in enumerate(prompts):
        prompt.run(PUSH % f"after-{number}")
    after = {(prompt.run("server()"), prompt.run("app.core.connections.url")) for prompt in prompts}

    assert 1 == len(before) == len(after)
    ((pid, url),), ((new_pid, new_url),) = before, after
    assert pid != new_pid
    assert url == new_url
    project.await_greeted(*(f"{when}-{number}" for when in ("before", "after") for number in range(3)))
    assert daemon.process.poll() is None


def test_an_idle_user_starts_a_killed_server_again(project: Project) -> None:
    """Nobody has to do anything: a program that only has its seat looks after the server, again and again."""
    prompt = project.prompt()
    pids = {prompt.run("server()")}

    for _ in range(3):
        project.kill_server()
        eventually(lambda: project.server_lives() and project.server_pid() not in pids, timeout=30)
        pids.add(project.server_pid())

    assert 4 == len(pids)
    # The server answers before the program that started it has said so.
    eventually(lambda: prompt.log.count("it had ended, and was started again") == 3)


def test_a_server_that_does_not_start_again_is_tried_again(project: Project) -> None:
    """What keeps it from starting is told, and when that is mended the server is back."""
    prompt = project.prompt()
    prompt.run(PUSH % "Ada")
    (manifest,) = (project.folder.path / "appendonlydir").glob("*.manifest")
    good = manifest.read_text()
    manifest.write_text("nonsense\n")

    project.kill_server()
    eventually(lambda: "Invalid AOF manifest" in prompt.log, timeout=30)
    manifest.write_text(good)

    eventually(lambda: "it had ended, and was started again" in prompt.log, timeout=30)
    assert {"done": 1} == prompt.run("app.drain(60)")


def test_a_folder_that_is_removed_is_told(project: Project) -> None:
    """Nobody can look after a server without its folder: the log says so, once, and the program goes on."""
    prompt = project.prompt()
    pid = prompt.run("server()")
    try:
        shutil.rmtree(project.folder.path)

        eventually(lambda: "nobody looks after it any more" in prompt.log, timeout=30)
        prompt.run(PUSH % "Ada")
        assert {"done": 1} == prompt.run("app.drain(60)")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_fork_goes_on_with_the_server(project: Project) -> None:
    """A child that is forked after a push pushes too; its end takes nothing from the parent."""
    prompt = project.prompt()
    prompt.run(PUSH % "parent")

    prompt.run(
        "import os, sys\n"
        "if (child := os.fork()) == 0:\n"
        "    Greet.push_many([{'id': 'child'}])\n"
        "    sys.stdin = open(os.devnull)\n"
        "    raise SystemExit(0)\n"
        "ended = os.waitpid(child, 0)[1]"
    )

    assert 0 == prompt.run("ended")
    prompt.run(PUSH % "again")
    assert {"done": 3} == prompt.run("app.drain(60)")


def test_a_child_that_outlives_its_parent_looks_after_the_server(project: Project, tmp_path: Path) -> None:
    """What was forked into the background has the server to itself then, and starts it again after a kill."""
    prompt, told = project.prompt(), tmp_path / "told"
    prompt.run(PUSH % "parent")
    project.await_written()
    prompt.run(
        "import os\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.close(writing)\n"
        "    os.read(reading, 1)\n"
        "    pid = server()\n"
        "    os.kill(pid, 9)\n"
        "    done = app.drain(60)['done']\n"
        f"    open({str(told)!r}, 'w').write(f'{{done}} {{pid}} {{server()}}')\n"
        "    raise SystemExit(0)\n"
        "os.close(reading)"
    )

    prompt.end()
    done, before, after = eventually(lambda: told.read_text().split() if told.exists() else [], timeout=30)

    assert "1" == done
    assert before != after
    eventually(lambda: not project.server_lives(), timeout=30, what="the end of the server after the child's")
