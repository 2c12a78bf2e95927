"""The permissions for the dashboard: `migrate` makes them. There is no table, and so no migration."""

from typing import ClassVar

from django.db import models

from lowkiq_lambda.contrib.django.installed import LABEL


class Dashboard(models.Model):
    """Stands for the pages: permissions of Django belong to a model."""

    class Meta:
        """Its permissions are `lowkiq.view` and `lowkiq.operate`."""

        app_label = LABEL
        managed = False
        default_permissions = ()
        permissions: ClassVar = [("view", "Can look at queues"), ("operate", "Can look at queues and act on them")]

    def __str__(self) -> str:
        return "dashboard"
