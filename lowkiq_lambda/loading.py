"""Finds the app that `MODULE:APP` names."""

import importlib
import sys
import traceback
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.config import is_embedded
from lowkiq_lambda.error_text import without_password
from lowkiq_lambda.errors import DeclarationError, LowkiqError

_OWN: Final = Path(__file__).parent


class AppNotFound(LowkiqError):
    """The app could not be loaded: name it as MODULE:APP, from the folder that the module is imported from."""


def load_app(spec: str) -> Lowkiq:
    """The app that `spec` names; its module is searched in the current folder too.

    Raises AppNotFound, in a sentence; from the module's own error where importing it failed.
    """
    module_name, colon, attribute = spec.partition(":")
    if "://" in spec or (is_embedded(spec) and not attribute.isidentifier()):
        raise AppNotFound(
            f"{without_password(spec)!r} names a server, not an app: give the app as MODULE:APP, such as "
            "shop.jobs:app, and the server in LOWKIQ_REDIS_URL."
        )
    if not (colon and module_name and attribute):
        raise AppNotFound(f"{spec!r} names no app: expected MODULE:APP, such as shop.jobs:app.")
    if "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").replace("/", ".").strip(".")
        raise AppNotFound(f"{spec!r} names a file: write {dotted}:{attribute}.")
    module = _import(module_name)
    try:
        value = attrgetter(attribute)(module)
    except AttributeError:
        raise AppNotFound(f"Module {module_name!r} has no {attribute!r}{_hint(module)}.") from None
    if not isinstance(value, Lowkiq):
        raise AppNotFound(f"{spec} is of type {type(value).__name__}, not a Lowkiq{_hint(module)}.")
    return value


def _import(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise AppNotFound(f"There is no module {name!r}, neither installed nor in {folder}.") from None
        raise _failed(name, error) from error
    except DeclarationError as error:
        # Its sentence says all that a traceback of ours would.
        raise AppNotFound(f"Importing {name!r} failed at {_place(error)}: {error}") from None
    except SystemExit as error:
        # Its code, often 0, would be that of the command, which has done nothing yet.
        raise AppNotFound(
            f"Importing {name!r} ends the program, by SystemExit: {error} at {_place(error)}. Let it do that only "
            'under `if __name__ == "__main__":`.'
        ) from None
    except Exception as error:
        raise _failed(name, error) from error


def _place(error: BaseException) -> str:
    """The line of the user's that the error came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent != _OWN]
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def _failed(name: str, error: Exception) -> AppNotFound:
    return AppNotFound(f"Importing {name!r} failed: {type(error).__name__}: {error}")


def _hint(module: ModuleType) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, Lowkiq))
    return f"; it has {', '.join(f'{module.__name__}:{name}' for name in apps)}" if apps else ""
