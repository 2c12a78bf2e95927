"""Where in the dashboard a request goes, wherever that is mounted."""

from collections.abc import Mapping
from typing import Any


def path_of(scope: Mapping[str, Any]) -> str:
    """The path behind the mount's own; begins with a slash."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path
