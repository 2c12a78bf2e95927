"""What a rule on claims lets in, and what the people whom it is about can write into a claim."""

from typing import Any

import pytest

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard import Auth, TrustedClaims, Visitor


def visitor(rule: str, claims: dict[str, Any], **options: Any) -> Visitor | None:
    """The caller with these claims where operators have this rule."""
    event = {"requestContext": {"authorizer": {"jwt": {"claims": claims}}}}
    trusted = TrustedClaims(source="jwt", operators=[rule], **options)
    return Auth(claims=trusted).visitor({"aws.event": event}, (), None, 0.0)


@pytest.mark.parametrize("verified", ["false", False, "", None, "yes", "[true]"], ids=repr)
def test_p10_an_address_that_nobody_has_verified_is_nobodys(verified: object) -> None:
    """P10: people enter any address when they sign up, so a rule on it needs the issuer's word; nor is it a name."""
    claims = {"email": "olga@example.org", "email_verified": verified, "sub": "7f3a", "scope": "ops"}

    assert visitor("email=*@example.org", claims) is None
    assert visitor("email=olga@example.org", {"email": "olga@example.org"}) is None
    assert visitor("scope=ops", claims) == Visitor("7f3a", "operator")
    assert visitor("scope=ops", claims, name="email") == Visitor("7f3a", "operator")


@pytest.mark.parametrize("verified", ["true", True, "True"], ids=repr)
def test_a_verified_address_counts(verified: object) -> None:
    """As a JWT has it, and as API Gateway writes it."""
    claims = {"email": "olga@example.org", "email_verified": verified}

    assert visitor("email=*@example.org", claims) == Visitor("olga@example.org", "operator")


def test_an_issuer_that_verifies_all_addresses_may_be_trusted() -> None:
    """Some send no `email_verified`."""
    claims = {"email": "olga@example.org"}

    assert visitor("email=*@example.org", claims, unverified_email=True) == Visitor("olga@example.org", "operator")


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("tenant=7&cognito:groups=ops", True),
        ("tenant=7 & cognito:groups=ops", True),
        ("tenant=7&cognito:groups=admins", False),
        ("tenant=8&cognito:groups=ops", False),
        ("cognito:groups=ops&cognito:groups=dev", True),
        ("cognito:groups=ops&cognito:groups=admins", False),
        ("tenant=7&email=*@example.org", False),
        ("tenant=7&nothing=*", False),
    ],
)
def test_all_conditions_of_a_rule_must_hold(rule: str, *, fits: bool) -> None:
    """`a=b&c=d` lets in those for whom both hold; the address is not verified."""
    claims = {"tenant": "7", "cognito:groups": "[dev ops]", "email": "olga@example.org"}

    assert fits == (visitor(rule, claims) is not None)


@pytest.mark.parametrize("rule", ["a=b&", "&a=b", "a=b&c", "a=b&=d", "a=b&c=", "a=b&&c=d"])
def test_half_a_condition_is_refused(rule: str) -> None:
    """A rule that says less than somebody thought lets in more."""
    with pytest.raises(ConfigError, match="is not a rule: expected claim=value"):
        TrustedClaims(source="jwt", operators=[rule])


@pytest.mark.parametrize(
    ("claim", "value", "items"),
    [
        ("cognito:groups", "[x admin]", ["x", "admin"]),
        ("cognito:groups", "x,admin", ["x", "admin"]),
        ("scope", "x admin", ["x", "admin"]),
        ("roles", ["x", "admin"], ["x", "admin"]),
        ("nickname", "[x admin]", []),
        ("nickname", "x,admin", []),
        ("given_name", "x admin", []),
    ],
)
def test_only_claims_known_as_lists_have_several_values(claim: str, value: object, items: list[str]) -> None:
    """A nickname in brackets is a nickname, though API Gateway writes lists so."""
    assert items == [item for item in ("x", "admin") if visitor(f"{claim}={item}", {claim: value})]
    assert (visitor(f"{claim}={value}", {claim: value}) is not None) is (not items)


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("[!a]", "b", False),
        ("a.c", "abc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*", "a\nb", True),
        ("a*", "A", False),
        ("a+", "aa", False),
        ("a|b", "b", False),
        ("*/ops/*", "arn:aws:sts::1:assumed-role/ops/olga", True),
    ],
)
def test_only_the_star_and_the_question_mark_are_wildcards(pattern: str, value: str, *, fits: bool) -> None:
    """All other characters stand for themselves."""
    assert fits == (visitor(f"claim={pattern}", {"claim": value}) is not None)
