"""Static files: style, scripts, pictures. Their path changes with their content, so browsers cache them for good."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

FOLDER: Final = Path(__file__).parent / "static"
FOREVER: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Assets:
    """The files by name, and the version of them all."""

    files: Mapping[str, bytes]
    version: str


@cache
def assets() -> Assets:
    """All static files, read once."""
    files = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in _TYPES}
    digest = sha256(b"\0".join(part for name, data in files.items() for part in (name.encode(), data)))
    return Assets(files, digest.hexdigest()[:12])


async def serve(request: Request) -> Response:
    """One file. A page from before a deploy names an older version: it gets the current one, uncached."""
    current, name = assets(), request.path_params["name"]
    if name not in current.files:
        return Response("The dashboard has no such file.\n", 404, media_type="text/plain")
    is_current = request.path_params["version"] == current.version
    headers = {"cache-control": FOREVER if is_current else "no-store"}
    return Response(current.files[name], headers=headers, media_type=_TYPES[Path(name).suffix])
