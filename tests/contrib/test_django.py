"""The kit for Django: what is installed, its settings, and pushes that wait for the commit."""

import json
import logging
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from lowkiq_lambda import BackendUnavailable, DeclarationError, JobError, Worker
from lowkiq_lambda.contrib.django import lowkiq_app, push_many_on_commit, push_on_commit
from lowkiq_lambda.contrib.django.apps import ConnectionsOfBatch
from lowkiq_lambda.contrib.django.installed import kit_settings
from tests.contrib.django_fixtures import site_environment
from tests.kit.daemons import ROOT
from tests.kit.handlers import Broken

pytestmark = pytest.mark.xdist_group("django")


def test_the_modules_of_jobs_are_found(site: ModuleType) -> None:
    """The app of the setting has the workers of all installed apps, and is the one that programs load."""
    from lowkiq_lambda.contrib.django import project  # noqa: PLC0415 - once Django is set up

    names = {worker.__name__ for worker in site.app.workers}

    assert {"ShipOrder", "TellCustomer", "CountStock"} <= names
    assert lowkiq_app() is site.app
    assert project.app is site.app


def test_setting_up_again_changes_nothing(site: ModuleType) -> None:
    """A middleware that gives connections back is there once, outermost, however often Django calls `ready`."""
    apps.get_app_config("lowkiq").ready()

    assert [0] == [n for n, one in enumerate(site.app.server_middlewares) if isinstance(one, ConnectionsOfBatch)]


def test_setting_up_asks_no_server_and_starts_nothing(django_site: ModuleType) -> None:
    """So it may happen in both processes of `runserver`, and in each command: Redis need not be there."""
    assert django_site.app
    code = "import threading, django; django.setup(); print(threading.active_count())"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=site_environment(SITE_REDIS="redis://127.0.0.1:1"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "1\n") == (done.returncode, done.stdout), done.stderr


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "The kit for Django needs a setting such as LOWKIQ = {"),
        ({}, r"LOWKIQ\['APP'\] must name the app of the jobs"),
        ({"APP": 7}, r"LOWKIQ\['APP'\] must name the app of the jobs"),
        ({"APP": "a:b", "REDIS_ULR": "x"}, "LOWKIQ has no 'REDIS_ULR': did you mean 'REDIS_URL'?"),
        ({"APP": "a:b", "redis_url": "x"}, "LOWKIQ has no 'redis_url': did you mean 'REDIS_URL'?"),
        ({"APPS": "a:b"}, "LOWKIQ has no 'APPS': did you mean 'APP'?"),
        ({"APP": "a:b", 7: "x"}, "LOWKIQ has no 7: it has APP, and the names of Config in capitals"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(given: object, sentence: str) -> None:
    """A misspelt key is told with the right one."""
    with pytest.raises(ImproperlyConfigured, match=sentence):
        kit_settings(given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"APP": "shop.jobs"}, r"LOWKIQ\['APP'\]: 'shop.jobs' names no app: expected MODULE:APP"),
        ({"APP": "no_such_module:app"}, r"LOWKIQ\['APP'\]: There is no module 'no_such_module'"),
        ({"APP": "tests.contrib.site.shop.jobs:app", "LEASE_TTL": 0}, "LOWKIQ: lease_ttl"),
    ],
)
def test_an_app_or_a_value_that_cannot_work_is_refused(
    site: ModuleType, monkeypatch: pytest.MonkeyPatch, given: dict[str, object], sentence: str
) -> None:
    """The error names the setting, and says what is wrong as a command line would."""
    assert site.app
    monkeypatch.setattr("django.conf.settings.LOWKIQ", given)

    with pytest.raises(ImproperlyConfigured, match=sentence):
        apps.get_app_config("lowkiq").ready()


def drained(site: ModuleType) -> list[tuple[str, list[Any]]]:
    """What has been performed when nothing is due any more."""
    site.app.drain(60)
    performed: list[tuple[str, list[Any]]] = [*site.performed]
    site.performed.clear()
    return performed


def test_a_push_waits_for_the_commit(site: ModuleType) -> None:
    """Inside of the transaction Redis has nothing; behind it the job is there."""
    with transaction.atomic():
        push_on_commit(site.ShipOrder, 7, {"status": "paid"}, score=2)
        push_on_commit(site.ShipOrder, 7, {"status": "new"}, score=1)
        assert [] == drained(site)

    assert [("7", [{"status": "new"}, {"status": "paid"}])] == drained(site)


def push_and_fail(site: ModuleType, order: int) -> None:
    """A transaction that pushes, and is rolled back by an error."""
    with transaction.atomic():
        push_on_commit(site.ShipOrder, order)
        raise Broken


def test_a_rollback_pushes_nothing(site: ModuleType) -> None:
    """Neither of the whole transaction nor of a part: what a savepoint has undone is not pushed."""
    with pytest.raises(Broken):
        push_and_fail(site, 1)
    with transaction.atomic():
        with pytest.raises(Broken):
            push_and_fail(site, 2)
        push_on_commit(site.ShipOrder, 3)

    assert [("3", [""])] == drained(site)


def test_a_commit_that_fails_pushes_nothing(site: ModuleType) -> None:
    """The database refuses the transaction at its very end."""
    from tests.contrib.site.shop.models import SiteOrder  # noqa: PLC0415 - once Django is set up

    @transaction.atomic
    def change() -> None:
        SiteOrder.objects.create(status="new", parent_id=404)
        push_on_commit(site.ShipOrder, 1)

    with pytest.raises(IntegrityError):
        change()

    assert [] == drained(site)


def test_a_push_waits_for_the_database_that_it_names(site: ModuleType) -> None:
    """`using` is that of on_commit: the transactions of two databases end each for itself."""
    with transaction.atomic(), transaction.atomic(using="other"):
        push_many_on_commit(site.ShipOrder, [{"id": "a"}, {"id": "b"}], using="other")
        push_on_commit(site.ShipOrder, "c")
        assert [] == drained(site)
        transaction.set_rollback(True)

    assert [("a", [""]), ("b", [""])] == drained(site)


def test_without_a_transaction_a_push_is_a_push(site: ModuleType) -> None:
    """There is nothing to wait for."""
    push_on_commit(site.ShipOrder, 7, "at once")

    assert [("7", ["at once"])] == drained(site)


def test_what_is_pushed_is_what_was_given(site: ModuleType) -> None:
    """The job stays as it was at the call; what code does to the payload before the commit is too late."""
    payload = {"lines": [1]}
    jobs = [{"id": 7, "payload": payload}]

    with transaction.atomic():
        push_many_on_commit(site.ShipOrder, jobs)
        payload["lines"].append(2)
        jobs.clear()

    assert [("7", [{"lines": [1]}])] == drained(site)


def test_a_mistake_is_told_at_the_call(site: ModuleType) -> None:
    """It comes where it was made, so the transaction is rolled back, and not after the commit."""

    class Unbound(Worker):
        def perform(self, _batch: object) -> None:
            """Never."""

    with transaction.atomic():
        with pytest.raises(JobError, match="id"):
            push_many_on_commit(site.ShipOrder, [{"id": 1}, {"payload": 2}])
        with pytest.raises(JobError, match="list of jobs"):
            push_many_on_commit(site.ShipOrder, {"id": 1})
        with pytest.raises(JobError, match="payload"):
            push_on_commit(site.TellCustomer, 1, {"status": 3})
        with pytest.raises(DeclarationError, match="not bound to an app"):
            push_on_commit(Unbound, 1)

    assert [] == drained(site)


def test_payloads_of_a_type_wait_too(site: ModuleType) -> None:
    """The handler is given objects of the declared type."""
    with transaction.atomic():
        push_on_commit(site.TellCustomer, 1, site.Changed("paid"))

    assert [("1", [site.Changed("paid")])] == drained(site)


def test_a_push_that_fails_behind_the_commit_is_told_or_logged(
    site: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Raised by default; a robust one is logged by Django, and the callbacks behind it run."""
    from tests.contrib.site.shop.models import SiteOrder  # noqa: PLC0415 - once Django is set up

    def refuse(*_arguments: object) -> None:
        raise BackendUnavailable

    monkeypatch.setattr(site.app.core.pushes, "push_many", refuse)

    @transaction.atomic
    def pay() -> None:
        SiteOrder.objects.create(status="paid")
        push_on_commit(site.ShipOrder, 1)

    with pytest.raises(BackendUnavailable):
        pay()
    with caplog.at_level(logging.ERROR), transaction.atomic():
        push_on_commit(site.ShipOrder, 1, robust=True)
        transaction.on_commit(lambda: SiteOrder.objects.create(status="later"))

    assert ["paid", "later"] == [order.status for order in SiteOrder.objects.order_by("id")]
    assert ["django.db.backends.base"] == [record.name for record in caplog.records]


def test_there_is_nothing_to_migrate(site: ModuleType) -> None:
    """The kit has no tables: `makemigrations` finds no change, and `check` no mistake."""
    assert site.app
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    call_command("check", fail_level="WARNING", verbosity=0)

    assert not [table for table in connection.introspection.table_names() if table.startswith("lowkiq")]


def test_a_command_of_manage_py_is_that_of_lowkiq(site: ModuleType) -> None:
    """It runs for the app of the setting, sets Django up, and passes its options on."""
    site.ShipOrder.push(7, "paid")
    options = ["lowkiq_drain", "--settings", "tests.contrib.site.settings", "--seconds", "30", "--json"]

    done = subprocess.run(
        [sys.executable, "-m", "django", *options],
        cwd=ROOT,
        env=site_environment(SHOP_QUEUE=site.NAME),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, {"done": 1}) == (done.returncode, json.loads(done.stdout)), done.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [(["--help"], 0, "Usage: lowkiq stats"), (["--jason"], 2, "--jason"), (["--json"], 0, '"queues": [')],
)
def test_options_of_a_command_are_those_of_lowkiq(
    site: ModuleType, capfd: pytest.CaptureFixture[str], options: list[str], code: int, said: str
) -> None:
    """Its help and its exit codes, too."""
    from lowkiq_lambda.contrib.django.management.commands.lowkiq_stats import Command  # noqa: PLC0415 - as above

    assert site.app
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "lowkiq_stats", *options])

    assert code == (ended.value.code or 0)
    assert said in "".join(capfd.readouterr())


def test_a_command_is_called_from_code(site: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """`call_command` takes its words, and raises where the program would end with another code than 0."""
    before = dict(os.environ)
    call_command("lowkiq_stats", site.ShipOrder.queue_name)
    assert before == dict(os.environ), "the process is as before"
    assert site.ShipOrder.queue_name in capfd.readouterr().out

    with pytest.raises(CommandError, match="lowkiq stats ended with 2"):
        call_command("lowkiq_stats", "no-such-queue")
