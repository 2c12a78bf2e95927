"""An app that the command line finds, with a queue whose handler the test chooses."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.cli import main
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.typing_in import Terminal

MODULE = "shop_of_commands"
TWO_DAYS = 2 * 86_400 + 1_800
"""And half an hour, which words for days leave out: they stay the same on a machine that is slow, too."""
Type: TypeAlias = Callable[[str], object]


class ShopOfCommands(NamedTuple):
    """The app, the only worker of it, and what the command line prints."""

    app: Lowkiq
    worker: type[Worker]
    capsys: pytest.CaptureFixture[str]

    @property
    def queue(self) -> str:
        """The name of the queue."""
        return self.worker.queue_name

    def run(self, *words: str) -> tuple[int, str, str]:
        """The exit code of a command, its output, and its error output."""
        code = main(words)
        return (code, *self.capsys.readouterr())


def handle(batch: Batch) -> None:
    """Ids that begin with `bad` fail."""
    for job_id in batch:
        if job_id.startswith("bad"):
            batch.fail(job_id, ValueError("it is bad\nin two lines"))


@pytest.fixture
def shop(
    server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ShopOfCommands]:
    """An app that LOWKIQ_APP names; its worker has three shards and kills what fails."""
    module = ModuleType(MODULE)
    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        body: dict[str, Any] = {"queue_name": queue_name, "shards_count": 3, "max_retry_count": 0}
        worker = app.worker(type("SyncOrder", (Worker,), {**body, "perform": lambda _self, batch: handle(batch)}))
        vars(module)["app"] = app
        monkeypatch.setitem(sys.modules, MODULE, module)
        monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")
        yield ShopOfCommands(app, worker, capsys)


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Type:
    """What is typed at the next question."""
    return lambda words: monkeypatch.setattr("sys.stdin", Terminal(words))
