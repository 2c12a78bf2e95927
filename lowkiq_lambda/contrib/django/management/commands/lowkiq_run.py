"""`manage.py lowkiq_run`."""

from lowkiq_lambda.contrib.django.management.passing import passing_command

Command = passing_command("run", "Perform the jobs of the project until told to stop.")
