"""Verifies a queue by its journals: whether payloads were delivered in order, once at a time, and none got lost.

What it proves, and what not, is in docs/journal.md.
"""

from lowkiq_lambda.operate.verify.rules import Content, Violation, violations

__all__ = ["Content", "Violation", "violations"]
