"""`manage.py lowkiq_fuzz`."""

from lowkiq_lambda.contrib.django.management.passing import passing_command

Command = passing_command("fuzz", "Try to refute that repeats, deaths and freezes do no harm to a handler.")
