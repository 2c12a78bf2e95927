"""The site of Django in this process: it is set up once, as Django can be set up only once."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest.mock import patch

import django
import pytest

from tests.kit.apps import close_app
from tests.kit.daemons import clean_environment
from tests.kit.servers import Server

if TYPE_CHECKING:
    from types import ModuleType

_ENVIRONMENT: dict[str, str] = {}


@pytest.fixture(scope="session")
def django_site(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator["ModuleType"]:
    """The jobs of the site, with its tables in two databases."""
    _ENVIRONMENT.update(
        DJANGO_SETTINGS_MODULE="tests.contrib.site.settings",
        SITE_FOLDER=str(tmp_path_factory.mktemp("site")),
        SITE_REDIS=server.url,
    )
    # Read once: programs that other tests start are to know nothing of it.
    with patch.dict(os.environ, _ENVIRONMENT):
        django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - once Django is set up

    for database in ("default", "other"):
        call_command("migrate", database=database, run_syncdb=True, verbosity=0)
    from tests.contrib.site.shop import jobs  # noqa: PLC0415 - as above

    yield jobs
    close_app(jobs.app)


def site_environment(**settings: str) -> dict[str, str]:
    """Of a process that is to set up the site of this one."""
    return {**clean_environment(), **_ENVIRONMENT, **settings}


@pytest.fixture
def site(django_site: "ModuleType") -> Iterator["ModuleType"]:
    """The same, as a test finds it: nothing has been performed, and no order is there."""
    from django.db import connections  # noqa: PLC0415 - once Django is set up

    from tests.contrib.site.shop.models import SiteOrder  # noqa: PLC0415 - as above

    django_site.performed.clear()
    yield django_site
    for database in ("default", "other"):
        SiteOrder.objects.using(database).all().delete()
    connections.close_all()
