"""An action between two requests: the page that shows how far it is keeps all of it, and the server nothing.

So it goes on wherever the next request arrives, and an action that nobody goes on with is over. It is not signed: who
may send it may do all that it could say, and each of its fields is checked.
"""

import base64
import binascii
import secrets
import zlib

import msgspec

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.store.filters import ALL
from lowkiq_lambda.store.sweeps import Sweep

_LARGEST = 8 * 1024 * 1024


class Ticket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep through a queue, and the fields of the list that it began at. `run`: what its lines in the log share."""

    queue: str
    sweep: Sweep
    back: dict[str, str] = {}
    run: str = msgspec.field(default_factory=lambda: secrets.token_hex(4))

    @property
    def what(self) -> str:
        """What it is done to, for the log."""
        sweep = self.sweep
        if sweep.chosen is not None:
            return audit.selected(sweep.chosen)
        said = msgspec.structs.asdict(sweep.filter).items()
        wanted = ", ".join(f"{name} {value!r}" for name, value in said if value != getattr(ALL, name))
        return f"those with {wanted}" if wanted else "all"


def packed(ticket: Ticket) -> str:
    """The ticket as a field of a form."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.msgpack.encode(ticket), 6)).decode()


def unpacked(text: str) -> Ticket:
    """The ticket that was packed. Raises ValueError for any other text."""
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(text, altchars=b"-_", validate=True), _LARGEST)
        return msgspec.msgpack.decode(data, type=Ticket)
    except (binascii.Error, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError("That is no ticket.") from error
