"""Keys that somebody deletes, or that a cache evicts: what they held is gone, the rest goes on (E-49)."""

import pytest

from lowkiq_lambda.store.shard.keys import SHARD_KEYS, ShardRef
from tests.chaos.shard_life import ShardLife
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server

pytestmark = pytest.mark.unverified("keys are deleted by hand")

STEPS = 24


@pytest.mark.parametrize("ids", mostly_nightly(["n", "nabcd"], "nabcd"))
@pytest.mark.parametrize("name", SHARD_KEYS)
def test_a_deleted_key_stops_no_shard(server: Server, queue_name: str, name: str, ids: str) -> None:
    """Wherever in the life of a shard it goes missing, what is pushed then is performed, under old ids and new."""
    for number in range(STEPS):
        shard = ShardRef(f"{queue_name} {number}", 1, 0)
        with ShardLife(server.url, server, shard) as life:
            for at, step in enumerate(life.steps()):
                if at == number:
                    break
                step.call()
            server.admin.delete(shard.key(name))
            life.start_over(ids)
            assert set(ids) <= life.perform_all()
