"""`manage.py lowkiq_drain`."""

from lowkiq_lambda.contrib.django.management.passing import passing_command

Command = passing_command("drain", "Perform what is due, and end.")
