"""Apps that tests make, and end."""

from collections.abc import Callable
from typing import TypeAlias

from lowkiq_lambda import Lowkiq

MakeApp: TypeAlias = Callable[..., Lowkiq]
"""Takes settings by their names."""


def close_app(app: Lowkiq) -> None:
    """Let the connections go that it has made."""
    for used in (app._client_backend, app._drainer and app._drainer._backend):
        if used:
            used.client.close()
