"""The addresses of the API (below /api/), and the ones at the root that machines watch."""

from django.urls import URLPattern, URLResolver, path

from control.api import docs, health, metrics
from control.api.room import api

urlpatterns: list[URLPattern | URLResolver] = [
    path("docs", docs.docs, name="api_docs"),
    path("openapi.json", docs.openapi, name="api_openapi"),
    path("", api.urls),
]

root_urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]
