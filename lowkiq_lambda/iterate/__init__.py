"""Functions that give (item, cursor) pairs, for a `perform_job` that yields its cursor.

Each takes `after`, the cursor of the last item that is done, and goes on with the item after it; None begins. They are
plain iterators: they compose, and nothing in the engine knows of them.
"""

from lowkiq_lambda.iterate.combine import chunks, nested, phases, throttled
from lowkiq_lambda.iterate.csv_files import csv_rows
from lowkiq_lambda.iterate.cursors import pages, s3_objects
from lowkiq_lambda.iterate.orm import django, sqlalchemy
from lowkiq_lambda.iterate.pairs import Pairs
from lowkiq_lambda.iterate.sequences import parts, sequence, share
from lowkiq_lambda.iterate.sql import key_ranges, keyset

__all__ = [
    "Pairs",
    "chunks",
    "csv_rows",
    "django",
    "key_ranges",
    "keyset",
    "nested",
    "pages",
    "parts",
    "phases",
    "s3_objects",
    "sequence",
    "share",
    "sqlalchemy",
    "throttled",
]
