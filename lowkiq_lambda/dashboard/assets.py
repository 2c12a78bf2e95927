"""What browsers keep: style, scripts, pictures; under a path that changes with their content."""

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
    """Read once; no more than these files can be asked for."""
    files = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in _TYPES}
    digest = sha256(b"\0".join(part for name, data in files.items() for part in (name.encode(), data)))
    return Assets(files, digest.hexdigest()[:12])


async def serve(request: Request) -> Response:
    """One file. A page from before a deploy asks for an older version, and gets this one, to keep for no time."""
    found, name = assets(), request.path_params["name"]
    if name not in found.files:
        return Response("There is no such file.\n", 404, media_type="text/plain")
    current = request.path_params["version"] == found.version
    headers = {"cache-control": FOREVER if current else "no-store"}
    return Response(found.files[name], headers=headers, media_type=_TYPES[Path(name).suffix])
