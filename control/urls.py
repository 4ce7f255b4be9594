"""Every URL of the console."""

from django.urls import include, path

from control.api import urls as api

urlpatterns = [
    path("", include("control.dashboard.urls")),
    path("", include(api.root_urlpatterns)),
    path("api/", include(api.urlpatterns)),
]
