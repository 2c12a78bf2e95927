"""Contexts of pyproject.toml, and the page that `lowkiq open` leads to."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from lowkiq_lambda.cli import main
from tests.kit.servers import Server

PROJECT = """
[tool.lowkiq]
app = "{module}:app"

[tool.lowkiq.contexts.prod]
redis_url = "{url}"
dashboard_url = "https://jobs.example.com/ops/"
env = {{ LOWKIQ_NAMESPACE = "{module}" }}

[tool.lowkiq.contexts.staging]
redis_url = "redis://127.0.0.1:1"

[tool.lowkiq.contexts.odd]
colour = "red"
"""
APP = """
from lowkiq_lambda import Config, Lowkiq, Worker

app = Lowkiq({config})


@app.worker
class SyncOrder(Worker):
    queue_name = "orders"

    def perform(self, batch):
        pass
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    """A project with three contexts, in the current folder."""
    module = f"shop_{uuid4().hex}"
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(module=module, url=server.url))
    (tmp_path / f"{module}.py").write_text(APP.format(config=""))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LOWKIQ_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_a_context_leads_a_command_to_its_server(capsys: pytest.CaptureFixture[str]) -> None:
    """At either place of the words, or by a variable; afterwards the environment is as before."""
    codes = [main(["stats", "--context", "prod"]), main(["--context=prod", "stats"])]
    tables = capsys.readouterr().out

    assert [0, 0] == codes
    assert 2 == tables.count("orders")
    assert [] == [name for name in os.environ if name.startswith("LOWKIQ_")]


@pytest.mark.usefixtures("project")
def test_another_context_leads_to_another_server() -> None:
    """Nobody answers there."""
    assert 3 == main(["stats", "--context", "staging"])


@pytest.mark.usefixtures("project")
def test_a_question_names_the_context(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal the refused question shows it."""
    monkeypatch.setenv("LOWKIQ_CONTEXT", "prod")

    assert 2 == main(["pause", "orders"])
    assert "In the context prod: " in capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--context", "prd"], "There is no context 'prd': there are odd, prod, staging."),
        (["--context", "odd"], "[tool.lowkiq.contexts.odd] has no 'colour'"),
        (["--context"], "--context needs the name of a context."),
    ],
)
def test_a_context_that_cannot_work_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence says what there is."""
    assert 2 == main(["stats", *words])
    assert sentence in capsys.readouterr().err


def test_a_server_that_code_names_is_no_contexts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody acts on another server than the one that the context names."""
    (project / "other.py").write_text(APP.format(config='Config(redis_url="redis://127.0.0.1:2")'))

    assert 2 == main(["stats", "--app", "other:app", "--context", "prod"])
    assert "the redis_url of the context 'prod' has no effect" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_open_prints_the_page_of_a_queue_or_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    """By the name of the worker, too; Redis is not asked. Without an address it says what to give."""
    codes = [
        main(["open", "SyncOrder", "--context", "prod"]),
        main(["open", "orders", "a b&c", "--dashboard", "http://127.0.0.1:8080"]),
        main(["open", "orders"]),
    ]
    printed = capsys.readouterr()

    assert [0, 0, 2] == codes
    assert [
        "https://jobs.example.com/ops/queue?queue=orders",
        "http://127.0.0.1:8080/job?queue=orders&id=a+b%26c",
    ] == printed.out.splitlines()
    assert "give --dashboard, or LOWKIQ_DASHBOARD_URL" in printed.err
