"""The app of the jobs, for programs that are not started by manage.py: `lowkiq_lambda.contrib.django.project:app`.

Importing this module sets Django up, by DJANGO_SETTINGS_MODULE: in functions on Lambda, and in the command `lowkiq`.
"""

import django

from lowkiq_lambda.contrib.django.installed import lowkiq_app

django.setup()
app = lowkiq_app()
