"""`embedded:` in place of a server's URL: the folder that it means.

    embedded:          `.lowkiq`
    embedded:FOLDER    that folder; `~` is the user's own

A relative folder lies at the root of the project, so that a program started in any folder of the project finds the
same server.
"""

from pathlib import Path
from typing import Final

from lowkiq_lambda.base.address import EMBEDDED
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.project import project_root

_DEFAULT: Final = ".lowkiq"


def folder_of(url: str) -> Path:
    """The folder, absolute. Raises ConfigError."""
    folder = url.removeprefix(EMBEDDED)
    if folder.startswith("//") or any(sign in folder for sign in "?#"):
        raise ConfigError(
            f"redis_url={url!r} is refused: behind embedded: a folder may follow, and nothing else",
            setting="redis_url",
        )
    try:
        return default_folder(Path(folder or _DEFAULT).expanduser())
    except RuntimeError as error:
        raise ConfigError(f"redis_url={url!r} is refused: {error}", setting="redis_url") from None


def default_folder(name: Path = Path(_DEFAULT)) -> Path:
    """The folder of that name at the root of the project."""
    return project_root() / name
