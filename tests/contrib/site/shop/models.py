"""The tables of the shop."""

from typing import Any

from django.db import models


class SiteOrder(models.Model):
    """An order, and the one that it belongs to."""

    status: Any = models.CharField(max_length=20)
    parent: Any = models.ForeignKey("self", models.DO_NOTHING, null=True)

    def __str__(self) -> str:
        return f"order {self.pk}"


class SiteVisit(models.Model):
    """A visit of the shop, with a key of each type."""

    uid: Any = models.UUIDField(primary_key=True)
    number: Any = models.IntegerField()
    at: Any = models.DateTimeField()
    day: Any = models.DateField()
    price: Any = models.DecimalField(max_digits=9, decimal_places=2)
    content: Any = models.BinaryField()
    order: Any = models.ForeignKey(SiteOrder, models.CASCADE, related_name="visits")

    class Meta:
        """An order that no loop takes."""

        ordering = ("-number",)

    def __str__(self) -> str:
        return f"visit {self.number}"
