"""An account for each person: their acts have their names, and no shared password."""

from typing import Any

import pytest

from lowkiq_lambda import ConfigError
from lowkiq_lambda.dashboard.security.passwords import hashed
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from tests.dashboard.conftest import MakeBrowser

OLGA, BEN = "the first of them", "the second one"


def settings_of(accounts: str, **more: str) -> DashboardSettings:
    """Those of an environment with these accounts."""
    return DashboardSettings.from_env({"LOWKIQ_DASHBOARD_ACCOUNTS": accounts, **more})


def test_each_person_signs_in_with_their_own_password(make_browser: MakeBrowser, worker: Any) -> None:
    """It may be a hash; a reader reads; the activity has the name of the one that acted."""
    settings = settings_of(f"olga:operator:{hashed(OLGA)}, ben:reader:{BEN}")
    auth = settings.auth()
    olga = make_browser(OLGA, auth=auth)
    olga.send("/actions/queue", {"queue": worker.queue_name, "do": "pause", "seconds": "60"})

    assert settings.has_auth()
    assert {"olga": "operator", "ben": "reader"} == {name: one.role for name, one in auth.accounts.items()}
    assert "olga" in olga.get("/activity").words
    assert "read only" in make_browser(BEN, auth=auth).get("/").words
    assert BEN not in repr(settings)


def test_a_shared_password_stays_beside_them() -> None:
    """Under the name that is nobody's."""
    auth = settings_of(f"olga:operator:{OLGA}", LOWKIQ_DASHBOARD_PASSWORD=BEN).auth()

    assert {"olga", "operator"} == {*auth.accounts}


@pytest.mark.parametrize(
    ("accounts", "sentence"),
    [
        (f"olga:{OLGA}", "expected name:operator:password"),
        (f"olga:admin:{OLGA}", "expected name:operator:password"),
        (f":operator:{OLGA}", "expected name:operator:password"),
        (f"operator:operator:{OLGA}", "Give each person their own name"),
        (f"olga:operator:{OLGA},olga:reader:{BEN}", "two accounts 'olga'"),
        ("olga:operator:secret", "needs at least"),
    ],
)
def test_bad_accounts_are_refused_without_their_passwords(accounts: str, sentence: str) -> None:
    """A sentence says what is expected."""
    with pytest.raises(ConfigError) as refused:
        settings_of(accounts).auth()

    assert sentence in str(refused.value)
    assert OLGA not in str(refused.value)
    assert ":secret" not in str(refused.value)
