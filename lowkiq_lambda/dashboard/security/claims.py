"""Claims that an authorizer of API Gateway has verified.

They are in the function's event, not in the request, so that callers cannot forge them.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from lowkiq_lambda.errors import ConfigError

Source = Literal["jwt", "iam"]


class TrustedClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on claims, for operators and readers.

    `source`: `jwt`, the claims of a JWT or Cognito authorizer; `iam`, the caller of a signed request with claims like
    `userArn` and `accountId`. A rule is `claim=value` with the wildcards `*` and `?`. Callers that match a rule of
    `operators` may act, callers that match one of `readers` may look. `name`: the claim with the caller's name for
    audit lines.
    """

    source: Source
    operators: Sequence[str] = ()
    readers: Sequence[str] = ()
    name: str = ""

    def __post_init__(self) -> None:
        """Checks the rules. Raises ConfigError."""
        rules = [*self.operators, *self.readers]
        if not rules:
            raise ConfigError("TrustedClaims has no rule: set operators or readers.")
        for rule in rules:
            if not all(rule.partition("=")):
                raise ConfigError(f"{rule!r} is not a rule: expected claim=value, for example email=*@example.org.")

    def role_and_name(self, event: object) -> tuple[Literal["operator", "reader"], str] | None:
        """The caller of an event; None if no rule matches."""
        claims = _claims(self.source, event)
        pairs = [*_flat(claims)]
        name = str(claims.get(self.name or _NAMES[self.source]) or claims.get("sub") or self.source)
        if any(_fits(rule, pairs) for rule in self.operators):
            return "operator", name
        if any(_fits(rule, pairs) for rule in self.readers):
            return "reader", name
        return None


_NAMES: Mapping[Source, str] = {"jwt": "email", "iam": "userArn"}


def _claims(source: Source, event: object) -> Mapping[str, Any]:
    context = _part(event, "requestContext")
    authorizer = _part(context, "authorizer")
    if source == "jwt":
        # HTTP APIs put them one step deeper than REST APIs do.
        return _part(_part(authorizer, "jwt"), "claims") or _part(authorizer, "claims")
    iam = _part(authorizer, "iam")
    if iam:
        return iam
    identity = _part(context, "identity")
    # A REST API fills these for signed requests only.
    return identity if identity.get("userArn") else {}


def _part(whole: object, name: str) -> Mapping[str, Any]:
    part = whole.get(name) if isinstance(whole, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _flat(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Claims and their values. API Gateway writes several values as `[a b]`."""
    for claim, value in claims.items():
        if isinstance(value, list):
            yield from ((claim, str(item)) for item in value)
        elif value is not None:
            text = str(value)
            yield claim, text
            if text.startswith("[") and text.endswith("]"):
                yield from ((claim, item) for item in text[1:-1].replace(",", " ").split())


def _fits(rule: str, pairs: Sequence[tuple[str, str]]) -> bool:
    claim, _, pattern = rule.partition("=")
    return any(name == claim and fnmatchcase(value, pattern) for name, value in pairs)
