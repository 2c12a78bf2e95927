"""`manage.py lowkiq_stats`."""

from lowkiq_lambda.contrib.django.management.passing import passing_command

Command = passing_command("stats", "Tell how much waits in the queues of the project.")
