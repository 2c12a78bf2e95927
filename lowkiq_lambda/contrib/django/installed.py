"""The app of the jobs, as the setting LOWKIQ names it."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import AppNotFound, ConfigError
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.loading import load_app

LABEL: Final = "lowkiq"
"""How Django calls the kit: in permissions, too."""
_APP: Final = "APP"
_SETTINGS: Final = {name.upper(): name for name in Config.__struct_fields__ if name != "app"}
_EXAMPLE: Final = 'LOWKIQ = {"APP": "shop.jobs:app", "REDIS_URL": "embedded:"}'


class KitSettings(NamedTuple):
    """What LOWKIQ says: the app as MODULE:APP, and settings of it by their names in `Config`."""

    app: str
    changes: Mapping[str, Any]


def kit_settings(options: object) -> KitSettings:
    """What the setting LOWKIQ says. Raises ImproperlyConfigured."""
    if not isinstance(options, Mapping):
        raise ImproperlyConfigured(f"The kit for Django needs a setting such as {_EXAMPLE}, not {options!r}.")
    for name in options:
        if name not in _SETTINGS and name != _APP:
            raise ImproperlyConfigured(f"LOWKIQ has no {name!r}: {_instead(name)}")
    app = options.get(_APP)
    if not (isinstance(app, str) and app):
        raise ImproperlyConfigured(f"LOWKIQ[{_APP!r}] must name the app of the jobs, as in {_EXAMPLE}, not {app!r}.")
    return KitSettings(app, {_SETTINGS[name]: value for name, value in options.items() if name != _APP})


def load_configured_app() -> Lowkiq:
    """The app that the setting LOWKIQ names, with the settings there. Raises ImproperlyConfigured."""
    options = kit_settings(getattr(settings, "LOWKIQ", None))
    try:
        app = load_app(options.app, Lowkiq)
        app.core.configure(**options.changes)
    except AppNotFound as error:
        raise ImproperlyConfigured(f"LOWKIQ[{_APP!r}]: {error}") from (error.__cause__ or error)
    except ConfigError as error:
        raise ImproperlyConfigured(f"LOWKIQ: {error}") from error
    return app


def lowkiq_app() -> Lowkiq:
    """The app of the jobs. Raises AppRegistryNotReady before Django is set up, LookupError without the kit."""
    apps.check_apps_ready()
    kit: Any = apps.get_app_config(LABEL)
    app: Lowkiq = kit.app
    return app


def _instead(name: object) -> str:
    similar = get_close_matches(str(name).upper(), [_APP, *_SETTINGS], 1)
    if similar:
        return f"did you mean {similar[0]!r}?"
    return "it has APP, and the names of Config in capitals, such as REDIS_URL."
