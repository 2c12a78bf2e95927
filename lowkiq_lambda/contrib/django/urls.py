"""The dashboard's addresses: `path("lowkiq/", include("lowkiq_lambda.contrib.django.urls"))`."""

from django.urls import re_path

from lowkiq_lambda.contrib.django.views import dashboard

app_name = "lowkiq"
urlpatterns = [re_path(r"^(?P<path>.*)$", dashboard, name="dashboard")]
