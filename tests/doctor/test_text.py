"""How a check-up reads in a terminal."""

from lowkiq_lambda.cli.doctor import describe
from lowkiq_lambda.operate.doctor.findings import CheckUp, Finding


def test_a_name_of_others_turns_no_text() -> None:
    """A queue may be called anything: nothing of its name is unseen, starts a line, or turns what follows."""
    finding = Finding(
        section="work", check="lag", mark="ok", says="fine", about="a\u202eb\n  BROKEN  x", advice="see \u2066"
    )
    checked = CheckUp(server="redis://", mark="ok", needs=(), promises=(), findings=(finding,), memory=())
    text = describe(checked, everything=True)

    assert r"lag: a\u202eb   BROKEN  x: fine" in text
    assert r"-> see \u2066" in text
