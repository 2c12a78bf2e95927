"""Reads the releases of the user's code that processes have had."""

from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import releases_key
from lowkiq_lambda.views.runs import Release


def read_releases(backend: Backend, retry_for: float) -> list[Release]:
    """The releases, the newest first. Raises BackendError."""
    key = releases_key(backend.prefix)
    command = ("ZREVRANGE", key, 0, -1, "WITHSCORES")
    parts = backend.retrying(retry_for, lambda: unless_error(*send_each(backend.client, [(key, command)])))
    return [
        Release(name.decode(errors="replace"), float(since))
        for name, since in zip(parts[::2], parts[1::2], strict=True)
    ]


def began_at(releases: list[Release], name: str) -> float:
    """When a process first had that release, Unix seconds. Raises ValueError, with the releases that there are."""
    for release in releases:
        if release.name == name:
            return release.since
    names = ", ".join(release.name for release in releases[:5]) or "none yet"
    raise ValueError(f"no process has had the release {name!r}; the last ones are: {names}")
