"""What API Gateway's own authorizer found out about a caller, where the configuration says to believe it.

It stands in the event that started the function, never in the request: no caller can write it.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from lowkiq_lambda.errors import ConfigError

Source = Literal["jwt", "iam"]


class TrustedClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Which claims let whom in.

    `source`: `jwt`, the claims of a JWT or Cognito authorizer; `iam`, the caller of a signed request, whose claims are
    `userArn`, `accountId` and so on. Rules are `claim=value`, where `*` and `?` stand for any letters: who has one of
    `operators` may act, who has one of `readers` may look, nobody else may do either. `name` is the claim that an
    audit line names somebody by.
    """

    source: Source
    operators: Sequence[str] = ()
    readers: Sequence[str] = ()
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse rules that let nobody in, or that are none."""
        rules = [*self.operators, *self.readers]
        if not rules:
            raise ConfigError("Claims are to be trusted, but no rule says whose: give operators or readers.")
        for rule in rules:
            if not all(rule.partition("=")):
                raise ConfigError(f"{rule!r} is no rule on a claim: write claim=value, as in email=*@example.org.")

    def role_and_name(self, event: object) -> tuple[Literal["operator", "reader"], str] | None:
        """The caller of an event, where the rules let them in."""
        claims = _claims(self.source, event)
        found = [*_flat(claims)]
        name = str(claims.get(self.name or _NAMES[self.source]) or claims.get("sub") or self.source)
        if any(_fits(rule, found) for rule in self.operators):
            return "operator", name
        if any(_fits(rule, found) for rule in self.readers):
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
    """Claims and values; of a claim with several values, which API Gateway writes as `[a b]`, each."""
    for claim, value in claims.items():
        if isinstance(value, list):
            yield from ((claim, str(one)) for one in value)
        elif value is not None:
            text = str(value)
            yield claim, text
            if text.startswith("[") and text.endswith("]"):
                yield from ((claim, one) for one in text[1:-1].replace(",", " ").split())


def _fits(rule: str, found: Sequence[tuple[str, str]]) -> bool:
    claim, _, pattern = rule.partition("=")
    return any(name == claim and fnmatchcase(value, pattern) for name, value in found)
