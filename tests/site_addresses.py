"""One row of everything that has a page, and the addresses of these pages."""

from io import BytesIO

from django.urls import URLPattern, reverse

from tests.factories import make_cell, make_config, make_gateway_trace, make_provider, make_run, make_step, make_trial
from tests.lab.schedules.scheduled import make_alert_delivery
from toolbench.lab.accounts.share_links import create_share_link
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.interchange.queue import queue_import
from toolbench.lab.models import CaseSet, History, Probe, Trial
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import save_record
from toolbench.lab.results.saved_views import save_view
from toolbench.lab.serving.aliases import AliasChoice, save_alias
from toolbench.web.urls import urlpatterns

NAMED = {str(pattern.name): pattern for pattern in urlpatterns if isinstance(pattern, URLPattern)}


def make_one_of_everything(base_url: str) -> Trial:
    """Make a failed trial with a step, and the other rows that `build_addresses` needs.

    Args:
        base_url: the address of its provider.
    """
    make_provider(base_url=base_url)
    trial = make_trial(make_cell(make_config(make_run(title="kept"))), "fail")
    make_step(trial)
    History.objects.create(name="turns.jsonl", sha256="0" * 64, turn_count=0)
    CaseSet.objects.create(name="mine")
    assert trial.config.model is not None
    model = trial.config.model
    Probe.objects.create(model=model, provider=model.provider, model_name=model.name, kind="first_use", state="done")
    return trial


def build_addresses(trial: Trial) -> dict[str, str]:
    """Return the address of every page by its name, and make the rows that are missing.

    Args:
        trial: of `make_one_of_everything`.
    """
    owner = get_first_owner()
    delivery = make_alert_delivery(trial.run)
    assert trial.config.model_id is not None
    values: dict[str, object] = {
        "run_id": trial.run_id,
        "trial_id": trial.pk,
        "provider_id": trial.provider_id,
        "model_id": trial.config.model_id,
        "config_id": trial.config_id,
        "probe_id": Probe.objects.values_list("pk", flat=True).first(),
        "step_id": trial.steps.values_list("pk", flat=True).first(),
        "record_id": save_record(DecideQuery(), owner=None).pk,
        "job_id": queue_import(BytesIO(b"{}"), "log.json", owner=None).pk,
        "history_id": History.objects.values_list("pk", flat=True).first(),
        "set_id": CaseSet.objects.values_list("pk", flat=True).first(),
        "user_id": owner.pk,
        "link_id": create_share_link(owner, "run", target=trial.run_id).pk,
        "token_id": create_api_token(owner, "kept", ["read"], None)[0].pk,
        "delivery_id": delivery.pk,
        "rule_id": delivery.alert.rule_id,
        "schedule_id": delivery.alert.rule.schedule_id,
        "view_id": save_view(owner, "kept", "/matrix/", shared=False).pk,
        "alias_id": save_alias(AliasChoice("kept", trial.config.model_id), owner=None).pk,
        "trace_id": make_gateway_trace().pk,
        **{
            "slug": "happy_path",
            "token": "unknown",
            "kind": "csv",
            "file_format": "csv",
            "chart": "dots",
            "side": "request",
            "file": "openai.py",
        },
    }
    special_values = {"case-export": {"kind": "jsonl", "file_format": "jsonl"}}
    argument_names = {name: pattern.pattern.regex.groupindex for name, pattern in NAMED.items()}
    return {
        name: reverse(name, kwargs={key: (values | special_values.get(name, {}))[key] for key in keys})
        for name, keys in argument_names.items()
    }
