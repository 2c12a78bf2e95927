"""The keys that there are, as the page of the data model tells of them."""

import re
from pathlib import Path

from lowkiq_lambda.store.shard.keys import FEATURES, key_names

PAGE = Path(__file__).parents[2] / "docs" / "data-model.md"


def test_each_key_has_a_row_that_says_what_travels() -> None:
    """Nobody adds a key and forgets what becomes of it when an id goes, or when its queue gets other shards."""
    chapter = PAGE.read_text(encoding="utf-8").partition("## What travels with an id")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", chapter, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert sorted(key_names(FEATURES)) == sorted(named)
