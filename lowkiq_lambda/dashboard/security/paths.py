"""The path of a request within the dashboard."""

from collections.abc import Mapping
from typing import Any


def path_of(scope: Mapping[str, Any]) -> str:
    """The path without the mount's root path; it begins with a slash."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path
