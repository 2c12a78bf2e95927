"""What may be said on the command line, and what it says where that cannot work."""

import subprocess
import sys
from pathlib import Path

import pytest

from lowkiq_lambda.cli import main
from tests.aws.schedules.command import (
    AWAY,
    DONE,
    FAILED,
    MISUSED,
    NOT_APPLIED,
    ROOT,
    Run,
    WriteApp,
    push,
    start,
    without_aws,
)
from tests.aws.schedules.front import Front
from tests.aws.schedules.values import FUNCTION, ROLE
from tests.kit.servers import Server


def test_the_module_runs_and_teaches(tmp_path: Path, front: Front, own_server: Server) -> None:
    """Both helps come without an account, an app or a server, and name the options and exit codes."""
    for words, expected in ((["--help"], "EXIT CODES"), (["indexes", "--help"], "ShardIndexes")):
        with subprocess.Popen(
            [sys.executable, "-m", "lowkiq_lambda", "stack", "schedules", *words],
            cwd=tmp_path,
            env={**without_aws(), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        ) as run:
            out, _ = run.communicate()
        assert DONE == run.returncode
        assert expected in out
    with start(["unknown:app"], front, own_server, tmp_path) as run:
        _, error = run.communicate()
    assert MISUSED == run.returncode
    assert error.startswith("error: There is no module 'unknown'")


def test_the_indexes_are_printed_for_the_template(run: Run, write_app: WriteApp, aws: Front) -> None:
    """The value for ShardIndexes is the only output, and AWS is not asked."""
    app = write_app({"Orders": 3, "Clicks": 1})

    said = run(app, indexes=True)

    assert (DONE, "0,1,2\n", "") == (said.code, said.out, said.error)
    assert [] == aws.requests


def test_the_indexes_are_not_printed_where_a_deploy_would_strand_jobs(run: Run, write_app: WriteApp) -> None:
    """The guard holds for those who use the template alone, too; nothing is printed that a script could go on with."""
    push(write_app({"Orders": 5}))
    app = write_app({"Orders": 3})

    said, unguarded = run(app, indexes=True), run(app, "--unguarded", indexes=True)

    assert (FAILED, "") == (said.code, said.out)
    assert "REFUSED  Queue 'Orders' was made with shards_count=5" in said.error
    assert (DONE, "0,1,2\n") == (unguarded.code, unguarded.out)


def test_too_many_indexes_for_a_template_are_warned_of(run: Run, write_app: WriteApp) -> None:
    """Before CloudFormation refuses a template with too many resources, the command says so."""
    said = run(write_app({"Orders": 401}), indexes=True)

    assert DONE == said.code
    assert "these are 401 schedules" in said.error


def test_the_app_may_be_named_by_the_environment(
    run: Run, write_app: WriteApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOWKIQ_APP says what the command line does not."""
    monkeypatch.setenv("LOWKIQ_APP", write_app({"Orders": 2}))
    named = ["--function", FUNCTION, "--role", ROLE]

    assert NOT_APPLIED == main(["stack", "schedules", *named, "--dry-run", "--prefix", "from-the-environment"])
    assert "0,1\n" == run(indexes=True).out.splitlines(keepends=True)[-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["shop.jobs:app"], "--stack, or --function and --role"),
        (["shop.jobs:app", "--function", "drain"], "--stack, or --function and --role"),
        (["shop.jobs:app", "--stack", "shop", "--prefix", "a b"], "--prefix 'a b'"),
        (["shop.jobs:app", "--stack", "shop", "--prefix", "a" * 53], "at most 52 letters"),
        (["shop.jobs:app", "--stack", "shop", "--group", "a" * 65], "at most 64 letters"),
        (["shop.jobs:app", "--stack", "shop", "--unknown"], "--unknown"),
        (["indexes", "shop.jobs:app", "--stack", "shop"], "--stack"),
    ],
)
def test_a_command_line_that_cannot_work_is_told_so(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing or wrong on the command line is named, with the exit code of misuse."""
    assert MISUSED == main(["stack", "schedules", *words])
    assert sentence in capsys.readouterr().err


def test_an_app_that_cannot_work_is_told_so(run: Run, write_app: WriteApp, tmp_path: Path) -> None:
    """No app, one without workers, one that cannot be imported: a sentence, the exit code of misuse, and no change."""
    (tmp_path / "broken_jobs.py").write_text("raise ValueError('no luck')")

    nameless, empty, broken = run("--yes"), run(write_app({}), "--yes"), run("broken_jobs:app", "--yes")

    assert [MISUSED] * 3 == [nameless.code, empty.code, broken.code]
    assert "give --app MODULE:APP, or set LOWKIQ_APP" in nameless.error
    assert "has no workers" in empty.error
    assert "ValueError: no luck" in broken.error


def test_what_aws_refuses_ends_the_run_with_a_sentence(run: Run, write_app: WriteApp, aws: Front) -> None:
    """An error of AWS is no trace, and its exit code says that it did not work."""
    aws.refuse(1, 403, "AccessDeniedException")

    said = run(write_app({"Orders": 1}), "--yes")

    assert FAILED == said.code
    assert said.error.startswith("error: The schedule group")


def test_aws_that_is_out_of_reach_is_told_apart(
    run: Run, write_app: WriteApp, aws: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3: no answer is something else than a refusal, and the same command may work later."""
    monkeypatch.setattr("lowkiq_lambda.aws.drain_schedules.deployed._ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SCHEDULER", "http://127.0.0.1:1")

    said = run(write_app({"Orders": 1}), "--yes")

    assert AWAY == said.code, said
    assert said.error.startswith("error: The schedule group")
    assert [] == aws.writes


def test_without_a_redis_the_guard_says_what_it_needs(
    run: Run, write_app: WriteApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no server is named, the sentence says how to name one and how to go without."""
    monkeypatch.delenv("LOWKIQ_REDIS_URL")

    said = run(write_app({"Orders": 1}), "--yes")

    assert MISUSED == said.code
    assert "LOWKIQ_REDIS_URL" in said.error
    assert "--unguarded" in said.error


def test_redis_is_found_by_a_secret(
    run: Run, write_app: WriteApp, aws: Front, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who deploys reaches Redis as the functions do, and need not know its password."""
    made = aws.cloud.client("secretsmanager").create_secret(Name=own_server.data_dir.name, SecretString=own_server.url)
    app = write_app({"Orders": 2})
    push(app)
    monkeypatch.delenv("LOWKIQ_REDIS_URL")
    monkeypatch.setenv("LOWKIQ_REDIS_SECRET_ARN", made["ARN"])

    assert "REFUSED  Queue 'Orders' was made with shards_count=2" in run(write_app({"Orders": 3}), "--dry-run").out
