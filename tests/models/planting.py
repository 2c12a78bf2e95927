"""Plants a fault into all scripts that have its text."""

from functools import cache
from hashlib import sha1

import msgspec
import pytest

from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.scripts import Script, script


def plant(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> set[str]:
    """From now on the scripts have the new text in place of the old one; the names of those that were linked so."""
    changed: set[str] = set()

    @cache
    def planted(name: str, groups: tuple[str, ...] = ()) -> Script:
        source = script(name, groups).source.replace(old, new)
        if source != script(name, groups).source:
            changed.add(name)
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        return msgspec.structs.replace(script(name, groups), source=source, sha=sha)

    monkeypatch.setattr(backend, "script", planted)
    return changed
