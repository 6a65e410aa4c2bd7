"""The addresses of the pages. One URL is one thing, whole or in part."""

from django.urls import URLPattern, URLResolver, path, re_path

from toolbench.web.views import (
    first,
    health,
    latency,
    matrix,
    models,
    personas,
    presets,
    profiles,
    runs,
    scenarios,
    sign_in,
    theme,
    trials,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", first.show, name="first"),
    path("matrix/", matrix.show, name="matrix"),
    re_path(r"^matrix/export\.(?P<kind>csv|json|md)$", matrix.export, name="matrix-export"),
    path("sign-in/", sign_in.show, name="sign-in"),
    path("sign-in/<str:token>/", sign_in.follow, name="sign-in-link"),
    path("sign-out/", sign_in.leave, name="sign-out"),
    path("runs/", runs.list, name="runs"),
    path("runs/new/", runs.new, name="run-new"),
    path("runs/<int:run_id>/", runs.show, name="run"),
    path("runs/<int:run_id>/act/", runs.act, name="run-act"),
    path("demo/", runs.list, {"simulated": True}, name="demo"),
    path("trials/", trials.list, name="trials"),
    path("trials/<int:trial_id>/", trials.show, name="trial"),
    path("trials/<int:trial_id>/note/", trials.note, name="trial-note"),
    path("latency/", latency.show, name="latency"),
    path("demo/personas/", personas.show, name="personas"),
    path("models/", models.show, name="models"),
    path("profiles/", profiles.show, name="profiles"),
    path("presets/", presets.show, name="presets"),
    path("policy/", presets.policy, name="policy"),
    path("scenarios/", scenarios.list, name="scenarios"),
    path("scenarios/<slug:slug>/", scenarios.show, name="scenario"),
    path("health/", health.show, name="health"),
    path("health/live", health.live, name="health-live"),
    path("theme/", theme.choose, name="theme"),
]
