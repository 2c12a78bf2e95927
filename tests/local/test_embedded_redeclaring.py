"""Another declaration on an embedded server, and the commands that look after the server itself."""

import shlex
from pathlib import Path

import pytest
import redis

from lowkiq_lambda.cli import main
from lowkiq_lambda.providers.embedded.folder import ServerFolder
from tests.kit.examples import mostly_nightly
from tests.kit.servers import MakeServer
from tests.kit.typing_in import Terminal
from tests.kit.waiting import eventually
from tests.local.programs import Project, Prompt, PromptError

PUSH = "Greet.push_many([{'id': %r}]) and None"
NOT_EMBEDDED = (
    ("LOWKIQ_REDIS_URL=redis://localhost:6379/0", "LOWKIQ_REDIS_URL names a server of its own"),
    ("LOWKIQ_ENV=production", "is for development, and LOWKIQ_ENV=production says"),
)
RESET = "or, as this is the embedded server, run `lowkiq reset Greet`."


def make_queue(project: Project, *ids: str) -> None:
    """Make the queue with these jobs, and write the app anew with another number of shards."""
    prompt = project.prompt()
    prompt.run("app.operate(Greet).shards() and None")
    for job_id in ids:
        prompt.run(PUSH % job_id)
    prompt.end()
    project.write(shards_count=5)


def refusal(prompt: Prompt) -> str:
    """What a push says that is refused."""
    with pytest.raises(PromptError) as refused:
        prompt.run(PUSH % "Ada")
    return str(refused.value)


def test_a_queue_that_is_declared_otherwise_can_be_reset(project: Project) -> None:
    """The error ends with a command, and after that command the push is accepted."""
    make_queue(project, "Ada", "Grace")
    prompt = project.prompt()
    said = refusal(prompt)
    prompt.end()
    assert said.startswith("QueueMismatch: Queue 'Greet' is declared with shards_count=5")
    assert said.endswith(RESET)

    command = shlex.split(said.rsplit("`", 2)[1])
    done = project.command(*command[1:], answer="yes\n")

    assert "lowkiq" == command[0]
    question, _, removed = done.stdout.partition(": removed ")
    assert f"Remove the queue 'Greet' and all its jobs from {project.folder.path}? Only 'yes' will do" == question
    assert f"the queue 'Greet' from {project.folder.path}: 2 waiting, 0 in the morgue\n" == removed
    assert (0, "") == (done.returncode, done.stderr)
    prompt = project.prompt()
    prompt.run(PUSH % "Linus")
    assert {"done": 1} == prompt.run("app.drain(60)")


@pytest.mark.parametrize("answer", mostly_nightly(["", "y\n", "no\n"], "y\n"))
def test_a_reset_that_nobody_agrees_to_removes_nothing(project: Project, answer: str) -> None:
    """A reset deletes jobs: anything but the word yes, and no answer at all, leaves them there."""
    make_queue(project, "Ada")

    done = project.command("reset", "Greet", answer=answer)

    assert (1, "") == (done.returncode, done.stderr)
    assert done.stdout.endswith("Nothing was removed.\n")
    project.write(shards_count=3)
    assert {"done": 1} == project.prompt().run("app.drain(60)")


def test_the_command_names_the_folder_where_it_is_another(project: Project, tmp_path: Path) -> None:
    """An app with a folder of its own is told the command for that folder."""
    project.url, project.folder = f"embedded:{tmp_path / 'my data'}", ServerFolder(tmp_path / "my data")
    project.write()
    project.prompt().run(PUSH % "Ada")
    project.write(shards_count=5)

    said = refusal(project.prompt())

    assert said.endswith(f"reset Greet --data-dir '{tmp_path / 'my data'}'`.")


def test_a_server_of_ones_own_gets_no_such_advice(project: Project, make_server: MakeServer) -> None:
    """Nobody is told to remove a queue where it may be a production's."""
    project.url = make_server().url
    project.write()
    project.prompt().run(PUSH % "Ada")
    project.write(shards_count=5)

    said = refusal(project.prompt())

    assert "QueueMismatch" in said
    assert "reset" not in said


def test_only_who_is_alone_may_reset(project: Project) -> None:
    """A queue is not taken from under a program that uses it: the command names the process, and does not even ask."""
    prompt = project.prompt()
    prompt.run(PUSH % "Ada")

    done = project.command("reset", "Greet", answer="yes\n")

    assert (1, "") == (done.returncode, done.stdout)
    assert f"error: The embedded server is in use by the process {prompt.pid}: end it" in done.stderr
    assert {"done": 1} == prompt.run("app.drain(60)")


def test_a_reset_takes_one_queue(project: Project) -> None:
    """Queues with similar names stay; one that there is not is told, without a question."""
    prompt = project.prompt()
    prompt.run("others = [app.worker(queue_name=name)(lambda batch: None) for name in ('Gree', 'Greet:3', 'Greeter')]")
    prompt.run("[other.push_many([{'id': 1}]) for other in others] and None")
    prompt.run(PUSH % "Ada")
    prompt.run("app.drain(0) and None")
    prompt.end()

    assert 0 == project.command("reset", "Greet", "--yes").returncode
    missing = project.command("reset", "Greet", answer="yes\n")

    assert (1, "") == (missing.returncode, missing.stdout)
    assert f"error: {project.folder.path} has no queue 'Greet'.\n" == missing.stderr
    prompt = project.prompt()
    keys = prompt.run(
        "sorted(key.decode().split(':')[1].strip('{}') for key in app.core.backend.client.keys('*:declaration'))"
    )
    assert ["Gree", "Greet%3A3", "Greeter"] == keys


def test_a_daemon_that_is_alone_declares_an_empty_queue_anew(project: Project) -> None:
    """Who edits a number and starts the daemon again need not care; the log says what was done."""
    make_queue(project)
    daemon = project.daemon()

    eventually(lambda: "INFO    daemon " in daemon.log, timeout=30)
    prompt = project.prompt()
    eventually(lambda: "declared anew" in daemon.log, timeout=30)
    prompt.run(PUSH % "Ada")

    project.await_greeted("Ada")
    assert (
        "queue 'Greet' has no jobs, and was declared anew: with shards_count=5 instead of shards_count=3" in daemon.log
    )


def test_a_daemon_does_not_declare_anew_a_queue_with_jobs(project: Project) -> None:
    """Jobs would be stranded: the daemon ends with the way out, and they are there as before."""
    make_queue(project, "Ada")

    daemon = project.daemon()

    assert 1 == daemon.exit_code()
    assert daemon.log.endswith(f"{RESET}\n")
    project.write(shards_count=3)
    assert {"done": 1} == project.prompt().run("app.drain(60)")


def test_a_daemon_does_not_declare_anew_what_others_use(project: Project) -> None:
    """A program that goes by the old declaration goes on: the daemon ends with the way out."""
    prompt = project.prompt()
    prompt.run("app.operate(Greet).shards() and None")
    project.write(shards_count=5)

    daemon = project.daemon()

    assert 1 == daemon.exit_code()
    assert daemon.log.endswith(f"{RESET}\n")
    prompt.run(PUSH % "Ada")
    assert {"done": 1} == prompt.run("app.drain(60)")


def test_other_tools_get_the_url(project: Project) -> None:
    """The command prints a URL that works when it has ended, and until the next user has left."""
    prompt = project.prompt()
    prompt.run(PUSH % "Ada")
    prompt.end()

    printed = project.command("redis")

    assert (0, "") == (printed.returncode, printed.stderr)
    with redis.Redis.from_url(printed.stdout.strip(), protocol=2) as client:
        assert client.exists("lowkiq:{Greet}:declaration")
    prompt = project.prompt()
    assert printed.stdout.strip() == prompt.run("app.core.connections.url")
    prompt.end()
    assert not project.server_lives()


@pytest.mark.parametrize(
    ("command", "setting", "words"),
    mostly_nightly(
        [(command, *refused) for command in ("redis", "reset Greet") for refused in NOT_EMBEDDED],
        # Each command once, and each setting.
        ("redis", *NOT_EMBEDDED[0]),
        ("reset Greet", *NOT_EMBEDDED[1]),
    ),
)
def test_the_commands_are_for_the_embedded_server_alone(
    project: Project, command: str, setting: str, words: str
) -> None:
    """Where another server is meant, or the process is a deployment, nothing is started and nothing removed."""
    name, _, value = setting.partition("=")
    done = project.command(*command.split(), **{name: value})

    assert 2 == done.returncode
    assert words in done.stderr
    assert not project.folder.path.exists()


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        ("comes", "error: The embedded server is in use by the process "),
        ("removes", "has no queue 'Greet'."),
    ],
)
def test_others_may_come_while_somebody_thinks_about_a_reset(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], meanwhile: str, said: str
) -> None:
    """A yes is to what was shown: a queue that a program uses by now is not removed, and one that is gone is said."""
    make_queue(project, "Ada")

    class Slow(Terminal):
        def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]  # as of a text
            prompt = project.prompt()
            if meanwhile == "removes":
                prompt.run("app.core.backend.client.flushall() and None")
                prompt.end()
            else:
                prompt.run("app.operate.stats() and None")
            return "yes\n"

    monkeypatch.setenv("LOWKIQ_ENV", "development")
    monkeypatch.setattr("sys.stdin", Slow())
    code = main(["reset", "Greet", "--data-dir", str(project.folder.path)])

    told = capsys.readouterr()
    assert 1 == code
    assert said in told.err
    assert "removed the queue" not in told.out
