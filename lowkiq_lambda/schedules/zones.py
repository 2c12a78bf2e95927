"""Time zones by their names."""

import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError

_NO_ZONES: Final = re.compile(r"(posix|right)/.*|localtime|posixrules|Factory|leapseconds")
"""What lies beside the zones in their folder: other forms of them, with leap seconds, and a machine's own choice."""
_USUAL_FOLDER: Final = "/usr/share/zoneinfo"
_FORM: Final = re.compile(r"[A-Za-z][\w+-]*(/[\w+-]+)*", re.ASCII)


def check_zone_name(name: object) -> None:
    """Raises DeclarationError for what cannot be the name of a zone; whether there is one is not looked up."""
    if not isinstance(name, str) or not _FORM.fullmatch(name):
        raise DeclarationError(f"tz must be the name of a time zone, such as 'Europe/Berlin', not {shown(name)}.")
    if _NO_ZONES.fullmatch(name):
        raise DeclarationError(
            f"tz {name!r} may mean another zone on another machine: name one such as 'Europe/Berlin'."
        )


def zone_of(name: str) -> tzinfo:
    """The zone of that name. Raises DeclarationError."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - imported lazily: cold start

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DeclarationError(f"tz {shown(name)} is not a time zone that is known here{_hint(name)}") from None


def check_zone_known(name: str) -> None:
    """Raises DeclarationError if this machine knows zones, and none of that name.

    As a rule the file of the zone is there, and nothing has to be imported to see that.
    """
    if name == "UTC" or Path(_USUAL_FOLDER, name).is_file():
        return
    from zoneinfo import available_timezones  # noqa: PLC0415 - as above

    if available_timezones():
        zone_of(name)


def _hint(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - for an error alone
    from zoneinfo import available_timezones  # noqa: PLC0415 - as above

    meant = get_close_matches(name, sorted(available_timezones()), 1)
    return f": did you mean {meant[0]!r}?" if meant else ", such as 'Europe/Berlin'."


def local_text(moment: float, tz: str) -> str:
    """The moment by the clocks of the zone, with the day of the week and what they are ahead of UTC.

    Raises DeclarationError for an unknown zone.
    """
    at = datetime.fromtimestamp(moment, zone_of(tz))
    text = at.isoformat(sep=" ", timespec="seconds")
    return f"{at:%a} {text[:19]} {text[19:]}"
