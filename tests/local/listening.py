"""Whether a daemon hears of pushes yet."""

from tests.kit.servers import Server


def listening(server: Server, queue_name: str) -> bool:
    """Whether somebody has subscribed to the queue's channel."""
    (_, number) = server.admin.execute_command("PUBSUB", "NUMSUB", f"lowkiq:{queue_name}:notify")
    return bool(number)
