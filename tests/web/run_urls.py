"""Addresses of every page and file about a run, built from the URL patterns."""

from collections.abc import Iterator

from django.test import Client
from django.urls import URLPattern, reverse

from toolbench.lab.models import History, Run, Step
from toolbench.web.url_converters import BodySideConverter, SheetFormatConverter, TableFormatConverter
from toolbench.web.urls import urlpatterns

_CONVERTERS = (BodySideConverter, SheetFormatConverter, TableFormatConverter)
_EXCLUDED_URL_NAMES = (
    "sign-in",
    "sign-out",
    "provider",
    "model",
    "probe",
    "case",
    "theme",
    "health",
    "record",
    "import-new",
    "families",
    "promote",
)
_POST_URL_NAMES = (
    "settings-file",
    "run-act",
    "runs-act",
    "view-save",
    "rule-new",
    "rejudge",
    "trial-note",
    "trial-verdict",
    "what-if-again",
    "scenario",
)


def iter_run_urls(run: Run, other: Run) -> Iterator[str]:
    """Yield the addresses of pages about `run`, filtered by it where they show more; `other` is the compared run."""
    trial, config = run.trials.order_by("pk").first(), run.configs.order_by("pk").first()
    step = Step.objects.filter(trial__run=run).order_by("pk").first()
    history = History.objects.first()
    rows = {"run_id": run, "trial_id": trial, "config_id": config, "step_id": step, "history_id": history}
    known: dict[str, object] = {name: row.pk for name, row in rows.items() if row is not None}
    for pattern in urlpatterns:
        if isinstance(pattern, URLPattern) and not str(pattern.name).startswith(
            (*_EXCLUDED_URL_NAMES, *_POST_URL_NAMES)
        ):
            for address in _iter_pattern_urls(pattern, known):
                yield f"{address}?run={run.pk}&a_run={run.pk}&b_run={other.pk}&view=bars"


def _iter_pattern_urls(pattern: URLPattern, known: dict[str, object]) -> Iterator[str]:
    converters = pattern.pattern.converters
    variants: list[dict[str, object]] = [{name: known[name] for name in converters if name in known}]
    for name, converter in converters.items():
        kinds = converter.regex.split("|") if isinstance(converter, _CONVERTERS) else ()
        if name not in known:
            variants = [variant | {name: kind} for variant in variants for kind in kinds]
    for variant in variants:
        if len(variant) == len(converters):
            yield reverse(str(pattern.name), kwargs=variant)


def list_failed_urls(client: Client, run: Run, other: Run) -> list[str]:
    """Return the addresses about `run` that do not answer 200, each with its status."""
    client.raise_request_exception = False
    answers = ((address, client.get(address).status_code) for address in iter_run_urls(run, other))
    return [f"{status} {address}" for address, status in answers if status != 200]
