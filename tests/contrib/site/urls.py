"""The addresses of the site."""

from django.urls import include, path

urlpatterns = [path("ops/jobs/", include("lowkiq_lambda.contrib.django.urls"))]
