"""Each key of a shard has a rule for a move, and no script of a move forgets one."""

import re
from pathlib import Path

from lowkiq_lambda.store.shard.keys import FEATURES, SHARD_KEYS, key_names
from lowkiq_lambda.store.shard.moving import TRAVELLING
from lowkiq_lambda.store.shard.scripts import script

PAGE = Path(__file__).parents[2] / "docs" / "resharding.md"
STAYING = {"lease", "journal", "flight", "pushes_even", "pushes_odd"}
"""What is not carried."""


def test_each_key_has_a_rule() -> None:
    """Nobody adds a key and forgets what becomes of it when its queue gets other shards."""
    chapter = PAGE.read_text(encoding="utf-8").partition("## What travels with an id")[2]
    rows = re.findall(r"^\| (`.*?) \|", chapter, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert sorted(key_names(FEATURES)) == sorted(named)


def test_what_is_carried_is_read_dropped_and_received() -> None:
    """The scripts that carry and receive are given each key that travels, also of features that few queues use."""
    features = (*TRAVELLING, "tenants", "debouncing", "marks")
    of_shards = {*SHARD_KEYS, *(key for feature in features for key in FEATURES[feature])}
    carried, received = ({*script(name, features).keys} for name in ("carry", "receive"))

    assert of_shards - STAYING == carried - STAYING
    assert of_shards - STAYING - {"groups"} == received - STAYING - {"groups"}
