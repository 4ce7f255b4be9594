"""The window's own addresses."""

from django.urls import path, re_path

from control.dashboard.views import accounts, fleet, memory, run, start, verbs

urlpatterns = [
    path("", fleet.page, name="fleet"),
    path("live/fleet", fleet.changes, name="fleet_changes"),
    path("sign-in/", accounts.sign_in, name="sign_in"),
    path("sign-in/<str:token>/", accounts.sign_in_link, name="sign_in_link"),
    path("sign-out/", accounts.sign_out, name="sign_out"),
    path("theme/", accounts.theme, name="theme"),
    path("agents/<path:name>/memory/", memory.page, name="memory"),
    path("runs/", fleet.home, name="runs"),
    path("runs/new/", start.page, name="start"),
    path("runs/<uuid:run_id>/", run.page, name="run"),
    path("runs/<uuid:run_id>/earlier", run.earlier, name="run_earlier"),
    path("runs/<uuid:run_id>/changes", run.changes, name="run_changes"),
    path("runs/<uuid:run_id>/calls/<str:call_id>/", run.call, name="run_call"),
    path("runs/<uuid:run_id>/withdraw", verbs.withdraw, name="run_withdraw"),
    re_path(
        r"^runs/(?P<run_id>[0-9a-f-]{36})/(?P<verb>interrupt|steer|pause|unpause|answer)$", verbs.act, name="run_verb"
    ),
]
