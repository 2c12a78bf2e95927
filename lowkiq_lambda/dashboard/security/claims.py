"""Claims that an authorizer of API Gateway has verified.

They are in the function's event, not in the request, so that callers cannot forge them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import ConfigError

Source: TypeAlias = Literal["jwt", "iam"]

LISTS: Final = frozenset(
    {"cognito:groups", "cognito:roles", "groups", "permissions", "roles", "scope", "scp", "aud", "amr"}
)
"""Claims with several values. API Gateway makes one text of them, so elsewhere a text with brackets is one value."""
_EMAIL: Final = "email"
_TRUE: Final = "true"


class TrustedClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on claims, for operators and readers.

    `source`: `jwt`, the claims of a JWT or Cognito authorizer; `iam`, the caller of a signed request with claims like
    `userArn` and `accountId`. A rule is `claim=value`, or several with `&` between them, all of which must hold; in a
    value `*` stands for any characters and `?` for one. Callers that match a rule of `operators` may act, callers that
    match one of `readers` may look. `name`: the claim with the caller's name for activity lines.

    The claim `email` counts only where `email_verified` is true, because people may enter the address of somebody else.
    `unverified_email`: it counts in any case; for an issuer that knows the addresses, and does not send that claim.
    """

    source: Source
    operators: Sequence[str] = ()
    readers: Sequence[str] = ()
    name: str = ""
    unverified_email: bool = False

    def __post_init__(self) -> None:
        """Checks the rules. Raises ConfigError."""
        rules = [*self.operators, *self.readers]
        if not rules:
            raise ConfigError("TrustedClaims has no rule: set operators or readers.")
        for rule in rules:
            if not all(claim and pattern for claim, pattern in _conditions(rule)):
                raise ConfigError(
                    f"{rule!r} is not a rule: expected claim=value, for example email=*@example.org, or several with & "
                    "between them."
                )

    def role_and_name(self, event: object) -> tuple[Literal["operator", "reader"], str] | None:
        """The caller of an event; None if no rule matches."""
        claims = _claims(self.source, event)
        if not self.unverified_email and str(claims.get("email_verified")).lower() != _TRUE:
            claims = {claim: value for claim, value in claims.items() if claim != _EMAIL}
        values = {claim: [*_values(claim, value)] for claim, value in claims.items()}
        name = str(claims.get(self.name or _NAMES[self.source]) or claims.get("sub") or self.source)
        if any(_fits(rule, values) for rule in self.operators):
            return "operator", name
        if any(_fits(rule, values) for rule in self.readers):
            return "reader", name
        return None


_NAMES: Final[Mapping[Source, str]] = {"jwt": _EMAIL, "iam": "userArn"}


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


def _values(claim: str, value: object) -> Iterator[str]:
    """The values of a claim. API Gateway writes several as `[a b]`, or with commas."""
    if isinstance(value, list):
        yield from map(str, value)
    elif value is not None and claim in LISTS:
        text = str(value)
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        yield from inner.replace(",", " ").split()
    elif value is not None:
        yield str(value)


def _conditions(rule: str) -> Iterator[tuple[str, str]]:
    for condition in rule.split("&"):
        claim, _, pattern = condition.partition("=")
        yield claim.strip(), pattern.strip()


def _fits(rule: str, values: Mapping[str, Iterable[str]]) -> bool:
    return all(any(_matches(value, pattern) for value in values.get(claim, ())) for claim, pattern in _conditions(rule))


def _matches(value: str, pattern: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, value, re.DOTALL) is not None
