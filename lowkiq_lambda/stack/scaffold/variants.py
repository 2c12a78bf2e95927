"""The web app that a project comes with, and what differs by it in files that all projects have."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

_SERVICE: Final = """\
  web:
    build: *image
    command: uvicorn web:web --host 0.0.0.0 --port 8000
    environment: *settings
    ports: ["127.0.0.1:8000:8000"]
    depends_on:
      valkey: {condition: service_healthy}
"""


class Web(StrEnum):
    """The web app."""

    NONE = "none"
    FASTAPI = "fastapi"


def values_of(web: Web) -> Mapping[str, str]:
    """What the files of the project have in their places for it."""
    if web is Web.NONE:
        return {
            "extras": "aws,local",
            "run": "lowkiq run --dashboard $(PORT)",
            "port": "8080",
            "checked": "",
            "service": "",
        }
    return {
        "extras": "aws,fastapi,local",
        "run": "uvicorn web:web --port $(PORT)",
        "port": "8000",
        "checked": " web.py",
        "service": _SERVICE,
    }
