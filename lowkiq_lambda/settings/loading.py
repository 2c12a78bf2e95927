"""Finds the app that `MODULE:APP` names, or the path of its module's file."""

import importlib
import sys
import traceback
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from lowkiq_lambda.base.address import is_embedded, without_password
from lowkiq_lambda.base.errors import AppNotFound, DeclarationError

App = TypeVar("App")
_OWN: Final = Path(__file__).parents[1]


def load_app(spec: str, kind: type[App]) -> App:
    """The app, of this class, that `spec` names; its module is searched in the current folder too.

    In place of the module may stand the path of its file, in the current folder or below: without `:APP` for the only
    app that is in it.

    Raises AppNotFound, in a sentence; from the module's own error where importing it failed.
    """
    module_name, colon, attribute = spec.partition(":")
    if "://" in spec or (is_embedded(spec) and not attribute.isidentifier()):
        raise AppNotFound(
            f"{without_password(spec)!r} names a server, not an app: give the app as MODULE:APP, such as "
            "shop.jobs:app, and the server in LOWKIQ_REDIS_URL."
        )
    if module_name.endswith(".py"):
        module_name = _module_of(module_name)
        attribute = attribute or _only_app(module_name, kind)
        colon = ":"
    if not (colon and module_name and attribute):
        raise AppNotFound(f"{spec!r} names no app: expected MODULE:APP, such as shop.jobs:app.")
    module = _import(module_name)
    try:
        value = attrgetter(attribute)(module)
    except AttributeError:
        raise AppNotFound(f"Module {module_name!r} has no {attribute!r}{_hint(module, kind)}.") from None
    if not isinstance(value, kind):
        raise AppNotFound(f"{spec} is of type {type(value).__name__}, not a {kind.__name__}{_hint(module, kind)}.")
    return value


def load_value(spec: str) -> object:
    """The variable that MODULE:NAME names; its module is searched in the current folder too. Raises AppNotFound."""
    module_name, _, attribute = spec.partition(":")
    module = _import(module_name)
    try:
        value: object = attrgetter(attribute)(module)
    except AttributeError:
        names = sorted(name for name, one in vars(module).items() if getattr(one, "app", None) is not None)
        hint = f"; it has {', '.join(f'{module_name}:{name}' for name in names)}" if names else ""
        raise AppNotFound(f"Module {module_name!r} has no {attribute!r}{hint}.") from None
    return value


def _module_of(path: str) -> str:
    """The name by which the file is imported from the current folder."""
    folder = Path.cwd().resolve()
    file = (folder / path).resolve()
    if not file.is_file():
        raise AppNotFound(f"There is no file {path!r} in {folder}.")
    if not file.is_relative_to(folder):
        raise AppNotFound(f"{path!r} lies outside of the current folder: call this from the folder of the project.")
    return ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def _only_app(module_name: str, kind: type) -> str:
    module = _import(module_name)
    names = [name for name, value in vars(module).items() if isinstance(value, kind)]
    if len({id(vars(module)[name]) for name in names}) != 1:
        raise AppNotFound(f"Module {module_name!r} has not one app but {len(names)}{_hint(module, kind)}.")
    return names[0]


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
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not Path(frame.filename).is_relative_to(_OWN)
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def _failed(name: str, error: Exception) -> AppNotFound:
    return AppNotFound(f"Importing {name!r} failed: {type(error).__name__}: {error}")


def _hint(module: ModuleType, kind: type) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, kind))
    return f"; it has {', '.join(f'{module.__name__}:{name}' for name in apps)}" if apps else ""
