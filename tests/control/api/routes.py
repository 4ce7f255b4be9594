"""The addresses under test."""

from django.urls import include, path

from control.api.urls import root_urlpatterns
from control.api.urls import urlpatterns as api_patterns

urlpatterns = [path("api/", include(api_patterns)), *root_urlpatterns]
