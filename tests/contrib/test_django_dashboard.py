"""The dashboard as a view of Django: who may come in, and who may act."""

import asyncio
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urljoin

import pytest
from django.test import AsyncClient, Client

pytestmark = pytest.mark.xdist_group("django")

BASE = "/ops/jobs/"
BROWSER = {"accept": "text/html,*/*;q=0.8"}
PROGRAM = {"accept": "*/*"}
OURS = {"sec-fetch-site": "same-origin"}


def client_of(*permissions: str, kind: type[Any] = Client) -> Any:
    """A browser of a user who has these permissions."""
    from django.contrib.auth.models import Permission, User  # noqa: PLC0415 - once Django is set up

    user = User.objects.create_user("-".join(["olga", *permissions]))
    for name in permissions:
        user.user_permissions.add(Permission.objects.get(content_type__app_label="lowkiq", codename=name))
    client = kind(headers=BROWSER)
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def users(site: ModuleType) -> Iterator[None]:
    """None is left behind."""
    from django.contrib.auth.models import User  # noqa: PLC0415 - once Django is set up

    assert site.app
    yield
    User.objects.all().delete()


def test_strangers_sign_in_at_the_site() -> None:
    """A page leads to the site's own sign-in and back; a part of a page, and a program, get a status."""
    client = Client(headers=BROWSER)

    led = client.get(f"{BASE}waiting?queue=a")

    assert (302, "/sign-in?next=/ops/jobs/waiting%3Fqueue%3Da") == (led.status_code, led["location"])
    part = client.get(BASE, headers={"hx-request": "true", **PROGRAM})
    assert (204, "true") == (part.status_code, part["hx-refresh"])
    assert 401 == client.get(f"{BASE}api/v1/stats", headers=PROGRAM).status_code
    assert 303 == client.post(f"{BASE}actions/queue", headers=OURS).status_code


def test_users_without_a_permission_see_nothing() -> None:
    """Signed in is not enough."""
    client = client_of()

    assert 403 == client.get(BASE).status_code
    assert 401 == client.get(f"{BASE}api/v1/stats", headers=PROGRAM).status_code


def test_readers_see_and_do_not_act(site: ModuleType) -> None:
    """`lowkiq.view` is the role of readers."""
    client = client_of("view")

    page = client.get(BASE)

    assert 200 == page.status_code
    assert site.ShipOrder.queue_name in page.content.decode()
    assert 403 == pause(client, site).status_code


def pause(client: Any, site: ModuleType, **headers: str) -> Any:
    """Pause a queue, as a script of a page does."""
    body = {"queue": site.ShipOrder.queue_name, "seconds": 60}
    return client.post(f"{BASE}api/v1/queue/pause", body, "application/json", headers={**OURS, **headers})


def test_operators_act(site: ModuleType) -> None:
    """`lowkiq.operate` is the role of operators; their name is in the activity."""
    client = client_of("operate")

    assert 200 == pause(client, site).status_code

    assert "olga-operate" in client.get(f"{BASE}activity?queue={site.ShipOrder.queue_name}").content.decode()
    assert "paused" in client.get(f"{BASE}queue?queue={site.ShipOrder.queue_name}").content.decode()


def test_other_sites_cannot_act(site: ModuleType) -> None:
    """A form of theirs comes with the session of the user, and with the browser's word on where it is from."""
    client = client_of("operate")

    assert 403 == pause(client, site, **{"sec-fetch-site": "cross-site"}).status_code


def test_links_and_files_stay_below_the_path() -> None:
    """Styles are found where the pages look for them; the dashboard's own way to sign in leads to its first page."""
    client = client_of("view")
    page = client.get(BASE).content.decode()
    (style,) = re.findall(r'href="([^"]*dashboard\.css)"', page)

    answer = client.get(urljoin(BASE, style))

    assert (200, "text/css; charset=utf-8") == (answer.status_code, answer["content-type"])
    assert BASE == urljoin(BASE, client.get(f"{BASE}sign-in")["location"])
    assert 404 == client.get(f"{BASE}no-such-page").status_code


def test_the_view_is_the_same_by_asgi() -> None:
    """A server of either kind may serve the site."""
    client = client_of("view", kind=AsyncClient)

    answer = asyncio.run(client.get(BASE))

    assert 200 == answer.status_code
    assert b"lowkiq" in answer.content
