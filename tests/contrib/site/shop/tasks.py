"""Tasks of Django, and what they have noted."""

from typing import Any

from tests.contrib.site.shop.interface import task

noted: list[tuple[Any, ...]] = []


@task
def sync_order(order_id: int, status: str = "new") -> str:
    """Has a key."""
    noted.append(("sync", order_id, status))
    if status == "bad":
        raise ValueError(status)
    return status


@task
def cancel_order(why: str, order_id: int) -> None:
    """Has the same key, at another place."""
    noted.append(("cancel", order_id, why))


@task(takes_context=True, queue_name="mail")
def mail(context: Any, to: str) -> None:
    """Has a queue of its own, and is told which attempt this is."""
    noted.append(("mail", to, context.attempt))
    if to == "nobody":
        raise ValueError(to)


@task
async def fetch(url: str) -> None:
    """A coroutine function."""
    noted.append(("fetch", url))


@task
def misnamed(order_id: int) -> None:
    """Its key names an argument that it has not."""
    noted.append(("misnamed", order_id))
