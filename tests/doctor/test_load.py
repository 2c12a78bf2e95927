"""The operators' load, in small: what needs somebody is what was planted, in the declared order, and nothing else."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

import pytest

from local.load.app import BLOCKING, FAILING, HANGING, LIMITED, MOVING, PLANNED, WITH_TENANTS, new_app
from local.load.planting import Load
from local.load.troubles import TROUBLES, lines_of
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.doctor import describe
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.doctor.checkup import check_up, look_for_needs
from lowkiq_lambda.operate.doctor.findings import Need
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.web import Browser

ROOT: Final = Path(__file__).parents[2]
SIZE: Final = 0.01
Line: TypeAlias = tuple[str, str]


@contextmanager
def planted(server: Server, without: Sequence[str] = ()) -> Iterator[Lowkiq]:
    """The app of an operator who comes to the load, by the clocks of this machine and of the server."""
    config = Config(redis_url=server.url)
    load = Load(config, SIZE, without=without)
    with closing_app(load.app):
        load.plant()
    with closing_app(new_app(config)) as app:
        yield app


def lines(needs: Sequence[Need]) -> list[Line]:
    """Check of each line, and what it is about."""
    return [(need.check, need.about) for need in needs]


def test_the_list_has_what_was_planted_for_everybody(own: Server) -> None:
    """The page, the terminal and programs have the same lines, worst first, each with its act."""
    with planted(own) as app:
        needs, checked = look_for_needs(app.operate), check_up(app.operate)
        browser = Browser(dashboard(app, auth=AUTH))
        browser.come_in(AUTH, OPERATOR, app.core.clock.time())
        page = browser.get("/").text
        statuses = {browser.get(f"/{link}").status for link in _links(page)}

    assert lines_of([*TROUBLES]) == lines(needs) == lines(checked.needs)
    assert ["broken"] * 2 + ["warning"] * 10 == [need.mark for need in needs]
    labels = [need.act.label for need in needs]
    assert labels == re.findall(r'<a id="need-\d+"[^>]*>([^<]+)<', page)
    assert {200} == statuses
    said_in_terminal = describe(checked).partition("\nPromises\n")[0]
    assert [check for check, _ in lines(needs)] == re.findall(
        r"^  (?:BROKEN|warning) +([a-z ]+): ", said_in_terminal, re.MULTILINE
    )


def test_queues_in_trouble_are_those_of_the_list(
    own: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of the terminal, the first group of the page, and the list name the same queues."""
    with planted(own) as app:
        module = ModuleType("app_of_the_load")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(module, "app", app, raising=False)
        named = {need.queue for need in look_for_needs(app.operate)} & {*app.core.queues}
        main(["stats", "--only-trouble", "--app", "app_of_the_load:app"])
        rows = capsys.readouterr().out.splitlines()[1:]
        browser = Browser(dashboard(app, auth=AUTH))
        browser.come_in(AUTH, OPERATOR, app.core.clock.time())
        page = browser.get("/").text

    assert {PLANNED, HANGING, *FAILING, BLOCKING, MOVING, WITH_TENANTS, LIMITED} == named
    in_terminal = [row.split()[0] for row in rows]
    assert named <= {*in_terminal}
    group = re.split("At work|Quiet", page.partition("Look here")[2])[0]
    assert {*in_terminal} == {*re.findall(r'<a id="queue-\d+" href="[^"]*queue=(\w+)"', group)}
    assert BLOCKING in in_terminal[:2]


def _links(page: str) -> list[str]:
    links = re.findall(r'<a id="need-\d+" class="button second" href="\./([^"#]*)', page)
    return [link.replace("&amp;", "&") for link in links]


@pytest.mark.parametrize("name", TROUBLES)
def test_a_trouble_that_is_not_there_has_no_line(own: Server, name: str) -> None:
    """Its lines are away, and the others stand as they stood."""
    with planted(own, [name]) as app:
        needs = look_for_needs(app.operate)

    assert lines_of([other for other in TROUBLES if other != name]) == lines(needs)


def test_a_load_that_is_well_needs_nobody(own: Server) -> None:
    """The list is empty, and the page says so."""
    with planted(own, [*TROUBLES]) as app:
        checked = check_up(app.operate)
        browser = Browser(dashboard(app, auth=AUTH))
        browser.come_in(AUTH, OPERATOR, app.core.clock.time())
        page = browser.get("/")

    assert ((), "ok") == (checked.needs, checked.mark)
    assert "Nothing needs anybody." in page.words
    assert "Nothing needs anybody." in describe(checked)


def test_a_program_plants_the_load() -> None:
    """On a server of its own; it tells what needs somebody, and ends."""
    words = [sys.executable, "-m", "local.load", "--size", str(SIZE), "--once", "--without", "failures"]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert "3,000 jobs that wait\n" in done.stdout
    assert "BROKEN     schedules: NightlyReport/impossible: it cannot fire" in done.stdout
    told = re.findall(r"^  (?:BROKEN|warning) +([a-z ]+): ", done.stdout.partition("\nPromises\n")[0], re.MULTILINE)
    assert [check for check, _ in lines_of([name for name in TROUBLES if name != "failures"])] == told


@pytest.mark.parametrize(("words", "sentence"), [(["--size", "2"], "2 is refused"), (["--without", "rain"], "rain")])
def test_a_load_that_there_is_not_is_refused(words: list[str], sentence: str) -> None:
    """Before any server is started."""
    done = subprocess.run(
        [sys.executable, "-m", "local.load", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (2, True) == (done.returncode, sentence in done.stderr)
