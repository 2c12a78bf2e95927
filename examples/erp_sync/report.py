"""What a run came to: the ERP beside the shop, and the sentences that tell it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.erp_sync.erp import Erp
from examples.erp_sync.shop import Shop

EXAMPLES = 5
"""How many differences are named."""


@dataclass(frozen=True, slots=True)
class Report:
    """The end of a run."""

    shop: Shop
    erp: Erp
    poison: Sequence[str]
    """Ids of orders that the ERP can never take."""
    morgue: Sequence[Mapping[str, Any]]
    """Jobs that used up their retries: queue, id, error."""
    kills: int
    moves: Sequence[str]
    """How many shards orders had before and after each change of them, oldest first."""

    @property
    def is_good(self) -> bool:
        """Whether the ERP has what the shop has, and the morgue the poison alone."""
        return not self.faults()

    def faults(self) -> list[str]:
        """What is not as it should be, a sentence each."""
        return [*self._differences(), *self._morgue_faults(), *self._catalogue_faults()]

    def lines(self) -> Iterator[str]:
        """The report."""
        sent, said = self.shop.counts, self.erp.answers
        yield (
            f"shop       {sent['changes']:,} changes of {len(self.shop.orders):,} orders and "
            f"{len(self.shop.stock):,} products; {sent['webhooks']:,} webhooks accepted, "
            f"{sent['lost']:,} lost, {sent['sent again']:,} sent again"
        )
        yield f"ERP        {', '.join(f'{count:,} {what}' for what, count in said.most_common()) or 'not asked'}"
        yield f"web app    killed {_several(self.kills, 'time')}"
        yield from (f"shards     of orders: {move}" for move in self.moves)
        for catalogue in self.erp.catalogues.values():
            yield f"catalogue  {catalogue['listed']:,} products listed, {catalogue['rejected']:,} refused"
        for job in self.morgue:
            yield f"morgue     {job['queue']} {job['id']}: {(job['error'] or '').strip().splitlines()[0]}"
        if faults := self.faults():
            yield f"DIFFERENT  {_several(len(faults), 'fault')}"
            yield from (f"           {fault}" for fault in faults[:EXAMPLES])
        else:
            apart = f", apart from {_several(len(self.poison), 'poison order')} in the morgue" if self.poison else ""
            yield f"EQUAL      {len(self.erp.orders):,} orders and {len(self.erp.stock):,} products{apart}"

    def _differences(self) -> Iterator[str]:
        wanted = {
            id: {name: value for name, value in order.items() if name != "id"}
            for id, order in self.shop.orders.items()
            if id not in self.poison
        }
        for id in sorted(wanted.keys() | self.erp.orders.keys()):
            if wanted.get(id) != self.erp.orders.get(id):
                yield f"order {id}: the shop has {wanted.get(id)}, the ERP {self.erp.orders.get(id)}"
        for sku in sorted(self.shop.stock.keys() | self.erp.stock.keys()):
            if self.shop.stock[sku] != self.erp.stock[sku]:
                yield f"stock of {sku}: the shop has {self.shop.stock[sku]}, the ERP {self.erp.stock[sku]}"
        if given_up := self.shop.counts["given up"]:
            yield f"never accepted: {_several(given_up, 'webhook')}"

    def _morgue_faults(self) -> Iterator[str]:
        found = {job["id"] for job in self.morgue if job["queue"] == "SyncOrder"}
        yield from (f"order {id} is poison, and not in the morgue" for id in sorted(set(self.poison) - found))
        for job in self.morgue:
            if job["queue"] != "SyncOrder" or job["id"] not in self.poison:
                yield f"{job['queue']} {job['id']} is in the morgue: {job['error']}"

    def _catalogue_faults(self) -> Iterator[str]:
        wanted = {product["sku"] for product in self.shop.products if product["picture"]}
        if wanted != self.erp.products.keys():
            yield f"the catalogue of the ERP has {len(self.erp.products):,} products in place of {len(wanted):,}"
        expected = {"listed": len(wanted), "rejected": len(self.shop.products) - len(wanted)}
        if [expected] != list(self.erp.catalogues.values()):
            yield f"the export ended as {list(self.erp.catalogues.values())} in place of {[expected]}"


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
