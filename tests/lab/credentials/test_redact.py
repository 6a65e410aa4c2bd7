"""Redacting: stored keys are overwritten in every column of every table and in every log."""

import base64
import io
import json
import math
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import models
from django.utils import timezone

from benchmarks.canary_search import CanarySearch
from tests.factories import (
    make_cell,
    make_config,
    make_gateway_trace,
    make_pace,
    make_provider,
    make_published_snapshot,
    make_run,
    make_step,
    make_trials,
)
from tests.lab.schedules.scheduled import make_alert_delivery
from tests.lab.scripted_runs import read_counters
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import (
    AliasBinding,
    ApiToken,
    AuditEntry,
    Case,
    CaseSet,
    CaseVersion,
    CausePool,
    Cell,
    CellPool,
    ClaimingWorker,
    DecisionRecord,
    GatewaySpending,
    GatewayTrace,
    GatewayTraceText,
    History,
    HistoryTurn,
    HumanVerdict,
    JobFailure,
    Judgement,
    LaunchKey,
    LibraryVersion,
    Model,
    ModelAlias,
    PacePoint,
    PoolState,
    Preset,
    PriceList,
    Probe,
    ProbeExchange,
    Process,
    Provider,
    RefusedParameter,
    Replay,
    RetentionRule,
    Run,
    RunChange,
    SamplingProfile,
    SavedView,
    ServiceAddress,
    ShareLink,
    SignInLink,
    SpendingWriter,
    StepBody,
    TrafficDraft,
    Trial,
    TrialText,
)
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

pytestmark = pytest.mark.django_db
KEY = "sk+7f/Q2"  # as short as a key may be, so that it fits most columns
SPLIT = b"".join(
    b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % KEY[at : at + 3].encode() for at in (0, 3, 6)
)
NEEDED_BY_MODEL: dict[type[models.Model], str] = {
    ServiceAddress: "key"
}  # tables and columns in which a secret is kept on purpose
NEEDED_COLUMNS = {"base_url", "api_prefix", "key_env", "key_encrypted", "headers_encrypted", "header_names"}
DERIVED = (TrialText, GatewayTraceText, CellPool, CausePool, PoolState)  # deleted and written anew
NEEDED_COLUMNS |= {"network_encrypted"}
# Columns on which counts depend.
COUNTED_COLUMNS = {"outcome", "state", "kind", "scenario", "policy_hash", "failure_class", "cause"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)
    monkeypatch.setenv("PLANTED", KEY)
    (tmp_path / "log").mkdir()
    return tmp_path


def _make_rows() -> None:
    """Create a row in every table."""
    provider = make_provider("Leaky", key_source="environment", key_env="PLANTED")
    model = Model.objects.create(provider=provider, name="one")
    cell = make_cell(make_config(make_run(), model))
    trials = make_trials(cell, **{"pass": 2, "fail": 1})
    make_step(trials[0])
    TrialText.objects.create(trial=trials[0], text="one", words="one")
    _add_gateway_rows(model)
    RetentionRule.objects.create(kind="passed", days=90)
    _add_rate_control(provider)
    TrafficDraft.objects.create(digest="0", title="x", definition="{}", file_name="x", line=1, count=1, answer_count=1)
    Judgement.objects.create(
        trial=trials[0], outcome="pass", scenario_version=1, judging_version=1, judged_at=timezone.now()
    )
    HumanVerdict.objects.create(trial=trials[0], execution=1, username="ana", verdict="fail", reason="It is wrong.")
    probe = Probe.objects.create(model=model, provider=provider, model_name="one", provider_name="x", kind="first_use")
    ProbeExchange.objects.create(probe=probe, execution=1, ordinal=1, check_slug="tools", duration_ms=5)
    Replay.objects.create(kind="run", scope_id=1)
    history = History.objects.create(name="old", sha256="0" * 64, turn_count=1)
    HistoryTurn.objects.create(history=history, line=1, model="m", path="tool_use")
    DecisionRecord.objects.create(title="t", verdict="none", sentence="s")
    case_set = CaseSet.objects.create(name="mine")
    case = Case.objects.create(set=case_set, slug="one", title="One")
    CaseVersion.objects.create(case=case, number=1, definition="{}")
    make_published_snapshot(("m", "p", 40, 10))
    Preset.objects.create(name="mine")
    PriceList.objects.create(template="mine")
    SamplingProfile.objects.create(name="mine")
    ServiceAddress.objects.create(name="own", host="h", url="http://x", key=KEY, ready_at=timezone.now())
    Process.objects.create(name="w", kind="worker", host="h", pid=1, seen_at=timezone.now())
    ClaimingWorker.objects.create(provider=provider, worker="w", seen_at=timezone.now())
    moment = timezone.now()
    JobFailure.objects.create(job="a sweep", error="ValueError", first_at=moment, last_at=moment)
    RefusedParameter.objects.create(run=cell.run, provider=provider, model_name="one", name="seed", created_at=moment)
    SignInLink.objects.create(user=get_first_owner(), token_hash="0" * 64, expires_at=timezone.now())
    AuditEntry.objects.create(username="owner", action="changed", subject="provider")
    make_alert_delivery(cell.run)
    Run.objects.filter(pk=cell.run_id).update(state=Run.State.FINISHED)
    recompute_stale()
    refresh_pools()
    RunChange.objects.create(run=cell.run)
    ApiToken.objects.create(user=get_first_owner(), name="ci", prefix="tb_", secret_hash="0" * 64)
    LaunchKey.objects.create(user=get_first_owner(), key="one", body_hash="0" * 64, run=cell.run)
    ShareLink.objects.create(user=get_first_owner(), kind="run", target=cell.run_id, expires_at=moment)
    SavedView.objects.create(owner=get_first_owner(), name="mine", address="/matrix/")
    LibraryVersion.objects.create(model=model, number=1, content={})


def _add_gateway_rows(model: Model) -> None:
    trace = make_gateway_trace(client_request=b"{}")
    GatewayTraceText.objects.create(trace=trace, text="one", words="one")
    alias = ModelAlias.objects.create(name="one", model=model, owner=get_first_owner())
    AliasBinding.objects.create(alias=alias, cause=AliasBinding.Cause.SAVED, model=model)
    SpendingWriter.objects.create(key=uuid4(), last_batch=1)
    GatewaySpending.objects.create(provider=model.provider, month=timezone.now().date())


def _add_rate_control(provider: Provider) -> None:
    make_pace(provider)
    PacePoint.objects.create(
        provider=provider, at=timezone.now(), seconds=10, concurrency=1, in_flight=1, answers=1, rejections=0
    )


def _build_planted_value(field: "models.Field[Any, Any]") -> Any:
    """Return a value of the column that contains the key; None if it does not fit or if counts depend on the column."""
    if field.name in COUNTED_COLUMNS | NEEDED_COLUMNS or field.choices or field.name.endswith("hash") or field.unique:
        return None
    if isinstance(field, models.BinaryField):
        return (
            SPLIT
            if field.name == "response"
            else json.dumps({"said": KEY, "x": base64.b64encode(KEY.encode()).decode()}).encode()
        )
    if isinstance(field, models.JSONField):
        return {"said": [f"so {KEY}"], KEY: 1} if field.default is dict else [[f"so {KEY}", {"a": KEY}]]
    if isinstance(field, (models.CharField, models.TextField)) and (field.max_length or math.inf) >= len(KEY):
        return KEY
    return None


def _plant_key() -> int:
    """Write the key into every column of every table, and return the number of columns."""
    planted = 0
    for model in apps.get_app_config("lab").get_models():
        assert model._base_manager.exists(), f"a row of {model.__name__} is missing here"
        if model in (ServiceAddress, SignInLink, ApiToken):
            continue
        values = {field.name: _build_planted_value(field) for field in model._meta.concrete_fields}
        values = {name: value for name, value in values.items() if value is not None}
        model._base_manager.filter(pk=model._base_manager.order_by("pk").values_list("pk", flat=True)[0]).update(
            **values
        )
        planted += len(values)
    return planted


def _find_leaks() -> list[str]:
    search, found = CanarySearch([KEY]), []
    for model in apps.get_app_config("lab").get_models():
        for row in model._base_manager.values():
            for name, value in row.items():
                content = (
                    bytes(value) if isinstance(value, memoryview | bytes) else json.dumps(value, default=str).encode()
                )
                if search.has_canary(content) and NEEDED_BY_MODEL.get(model) != name:
                    found.append(f"{model.__name__}.{name}")
    return found


def _redact(**options: Any) -> str:
    output = io.StringIO()
    call_command("redact", stdout=output, **options)
    return output.getvalue()


def test_redact_leaves_the_key_in_no_column_of_any_table() -> None:
    _make_rows()
    planted = _plant_key()
    assert len(_find_leaks()) == planted > 100
    kept_models = [model for model in apps.get_app_config("lab").get_models() if model not in DERIVED]
    before = [model._base_manager.count() for model in kept_models]
    output = _redact()
    assert _find_leaks() == []
    assert before == [model._base_manager.count() for model in kept_models]
    assert "lab_stepbody: 1 of 1 overwritten" in output
    assert "delete bundles, reports" in output
    assert bytes(StepBody.objects.get().response) == SPLIT.replace(b"sk+", b"***").replace(b"7f/", b"***").replace(
        b"Q2", b"**"
    )
    assert StepBody.objects.get().step.masked


def test_redact_again_finds_nothing_and_changes_no_count() -> None:
    _make_rows()
    cell = Cell.objects.get()
    mark_stale([cell.pk])
    recompute_stale()
    before = read_counters(Cell.objects.get())
    Trial.objects.update(sentence=f"It said {KEY}.", final_text=KEY.encode())
    assert "lab_trial: 3 of 3 overwritten" in _redact()
    mark_stale([cell.pk])
    recompute_stale()
    assert read_counters(Cell.objects.get()) == before
    assert _redact().startswith("0 of ")


def test_redact_dry_run_reports_counts_and_changes_nothing(folder: Path) -> None:
    _make_rows()
    _plant_key()
    (folder / "log" / "worker.log").write_text(f"refused {KEY}\n")
    before = _find_leaks()
    assert "lab_trial: 1 of 3 would be overwritten" in _redact(dry_run=True)
    assert _find_leaks() == before
    assert KEY in (folder / "log" / "worker.log").read_text()


def test_redact_overwrites_lines_of_logs_in_place(folder: Path) -> None:
    path = folder / "log" / "worker.log"
    with path.open("a") as writer:
        writer.write(f"first\nrefused {KEY}\nlast\n")
        writer.flush()
        make_provider("Leaky", key_source="environment", key_env="PLANTED")
        assert "worker.log: 1 of 3 overwritten" in _redact()
        writer.write("later\n")
    assert path.read_text() == f"first\nrefused {'*' * len(KEY)}\nlast\nlater\n"


def test_redact_keeps_names_distinct_that_differ_in_keys(folder: Path) -> None:
    (folder / "old").write_text("sk-first-key-0001\nsk-other-key-0002\n")
    presets = [Preset.objects.create(name=f"for {key}") for key in ("sk-first-key-0001", "sk-other-key-0002")]

    assert "lab_preset: 2 of 2 overwritten" in _redact(secrets=str(folder / "old"))

    stars = f"for {'*' * 17}"
    number = f" {presets[1].pk}"
    assert [*Preset.objects.order_by("pk").values_list("name", flat=True)] == [stars, stars[: -len(number)] + number]


def test_redact_takes_old_keys_from_a_file(folder: Path) -> None:
    _make_rows()
    Trial.objects.update(sentence="It said sk-old-key-of-last-year.")
    (folder / "old").write_text("sk-old-key-of-last-year\n\n")
    _redact(secrets=str(folder / "old"))
    assert not Trial.objects.filter(sentence__contains="old-key").exists()
    (folder / "old").write_text("short\n")
    with pytest.raises(CommandError, match="fewer than 8 characters"):
        _redact(secrets=str(folder / "old"))
    with pytest.raises(CommandError, match="cannot be read"):
        _redact(secrets=str(folder / "none"))


@pytest.mark.parametrize(
    "address",
    [{"base_url": "https://example.test/sk-in-the-path-123/v1"}, {"api_prefix": "/sk-in-the-path-123/v1"}],
)
def test_redact_names_provider_with_secret_in_address(address: dict[str, str]) -> None:
    provider = make_provider("In the path", **address)
    _make_rows()
    Trial.objects.update(sentence="It said sk-in-the-path-123.")
    output = _redact()
    assert "The address or prefix of In the path contains a secret" in output
    assert Provider.objects.filter(pk=provider.pk, **address).exists()
    assert not Trial.objects.filter(sentence__contains="in-the-path").exists()


def test_redact_deletes_search_texts_and_marks_them_stale() -> None:
    _make_rows()
    for table in (TrialText, GatewayTraceText):
        table._base_manager.update(text=f"so {KEY}", words="so 7f q2")
    GatewayTrace.objects.update(text_stale=False)
    _redact()
    assert not TrialText.objects.exists()
    assert not GatewayTraceText.objects.exists()
    assert Trial.objects.filter(text_stale=False).count() == 0
    update_search_texts()
    assert update_search_texts(GATEWAY_TRACES) == 1
    assert not TrialText.objects.filter(text__contains=KEY).exists()
