"""The tables of the shop."""

from typing import Any

from django.db import models


class SiteOrder(models.Model):
    """An order, and the one that it belongs to."""

    status: Any = models.CharField(max_length=20)
    parent: Any = models.ForeignKey("self", models.DO_NOTHING, null=True)

    def __str__(self) -> str:
        return f"order {self.pk}"
