"""The settings of the site; the folder of its databases and its Redis are told by the environment."""

import os
from pathlib import Path
from typing import Any

_FOLDER = Path(os.environ["SITE_FOLDER"])

SECRET_KEY = "a secret of tests"  # noqa: S105 - it protects nothing
ALLOWED_HOSTS = ["*"]
DEBUG = False
USE_TZ = True
TIME_ZONE = None  # else Django sets the time zone of the process, and of all tests in it
ROOT_URLCONF = "tests.contrib.site.urls"
LOGIN_URL = "/sign-in"
LOGGING_CONFIG = None  # pytest looks after the logs
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "lowkiq_lambda.contrib.django",
    "tests.contrib.site.shop",
    "tests.contrib.site.stock",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


def _database(name: str) -> dict[str, Any]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": _FOLDER / f"{name}.sqlite3", "OPTIONS": {"timeout": 60}}


DATABASES = {"default": _database("default"), "other": _database("other")}
LOWKIQ = {"APP": "tests.contrib.site.shop.jobs:app", "REDIS_URL": os.environ["SITE_REDIS"]}
TASKS = {
    "default": {
        "BACKEND": "lowkiq_lambda.contrib.django.tasks.LowkiqBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {
            "keys": {
                "tests.contrib.site.shop.tasks.sync_order": "order_id",
                "tests.contrib.site.shop.tasks.cancel_order": "order_id",
                "tests.contrib.site.shop.tasks.misnamed": "no_such_argument",
            },
            "shards_count": 2,
            "max_retry_count": 1,
        },
    }
}
