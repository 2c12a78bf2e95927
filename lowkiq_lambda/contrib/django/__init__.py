"""The kit for Django: an app to install, pushes that wait for the commit, commands, and the dashboard for its users."""

from lowkiq_lambda.contrib.django.commit import push_many_on_commit, push_on_commit
from lowkiq_lambda.contrib.django.installed import lowkiq_app

__all__ = ["lowkiq_app", "push_many_on_commit", "push_on_commit"]
