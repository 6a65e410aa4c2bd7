"""Scope and role of every operation. A new operation needs a row in the table."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.api.requests import ApiClient
from toolbench.api.application import API
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import ROLES_BY_SCOPE, Scope, create_api_token

pytestmark = pytest.mark.django_db

OPERATIONS: dict[Scope, frozenset[str]] = {
    Scope.READ: frozenset({
        "list_runs", "plan_run", "get_run", "estimate_run", "read_run_settings", "get_trend",
        "list_trials", "get_trial", "get_step", "get_step_bytes",
        "list_metrics", "get_matrix_table", "compare_sides", "list_failures", "get_run_latency", "replay_trials",
        "list_judgements", "decide", "list_records", "get_decision_record", "list_changes", "export_settings",
        "list_scenarios", "read_scenario", "list_profiles", "get_profile", "list_presets", "get_preset",
        "list_cases", "export_cases", "get_case", "list_providers", "get_one_provider", "list_offered_models",
        "list_conversations", "read_conversation", "list_models", "get_model", "read_model_settings", "get_probe",
        "list_schedules", "get_schedule", "list_rules", "list_alerts",
        "list_gateway_aliases", "list_alias_bindings", "list_gateway_traces", "get_gateway_trace", "get_gateway_body",
        "list_traffic_drafts",
        "download_report_page", "download_report", "download_bundle", "export_run_trials",
        "download_inspect_logs", "download_run_spans", "download_trial_spans",
    }),
    Scope.LAUNCH: frozenset({
        "launch_run", "label_run", "delete_run", "pause_run", "resume_run", "cancel_run", "retry_run",
        "resume_cancelled_run", "raise_limits", "add_trials", "repeat_run",
        "annotate_trial", "judge_trial", "rejudge_run",
        "launch_missing", "save_decision", "confirm_record", "keep_confirmation",
        "add_profile", "change_profile", "remove_profile", "add_preset", "change_preset", "remove_preset",
        "create_case", "bring_cases", "change_privacy", "change_case", "remove_case",
        "start_conversation", "send_next_message", "delete_conversation", "save_answer_as_case", "run_answer_as_case",
        "request_offered_models", "add_models", "probe_provider", "set_canonical_model", "edit_model_settings",
        "probe_model", "omit_refused_parameters", "adopt_proposed_preset",
        "add_schedule", "change_schedule", "switch_schedule", "delete_schedule", "launch_scheduled", "pin_runs",
        "list_links", "make_link", "revoke_link",
        "add_alias", "change_alias", "remove_alias", "roll_back_alias", "promote_record",
        "make_draft_of_trace",
        "import_recorded_traffic", "review_drafts",
        "add_rule", "switch_rule", "delete_rule", "send_test_message", "retry_message",
    }),
    Scope.ADMIN: frozenset({"connect_provider", "edit_provider", "delete_provider"}),
}  # fmt: skip
DOCUMENT: dict[str, Any] = dict(API.get_openapi_schema())
RANKS = list(Role)


def list_operations() -> dict[str, tuple[str, str]]:
    """Return method and path of each operation; the path's ids do not exist."""
    return {
        details["operationId"]: (method.upper(), re.sub(r"{[^}]+}", "999999", path).removeprefix("/api/v1"))
        for path, methods in DOCUMENT["paths"].items()
        for method, details in methods.items()
    }


def test_operations_table_has_scope_of_every_operation() -> None:
    declared = {
        details["operationId"]: details["x-scope"]
        for methods in DOCUMENT["paths"].values()
        for details in methods.values()
    }
    assert declared == {name: scope.value for scope, names in OPERATIONS.items() for name in names}


@pytest.mark.parametrize("role", Role)
def test_operation_returns_403_only_without_required_role_and_scope(owner: User, role: Role) -> None:
    clients = {scope: ApiClient(create_api_token(owner, scope, [scope], None)[1]) for scope in Scope}
    set_role(owner, role)
    owner.save()
    for name, (method, path) in list_operations().items():
        needed = next(scope for scope, names in OPERATIONS.items() if name in names)
        for scope, client in clients.items():
            status = client.send(method, path).status_code
            is_allowed = scope == needed and RANKS.index(role) >= RANKS.index(ROLES_BY_SCOPE[needed])
            assert (status != 403) == is_allowed, (name, scope, status)
            assert status < 500, name


def test_operation_without_token_returns_401(client: Client, db: None) -> None:
    for name, (method, path) in list_operations().items():
        assert client.generic(method, f"/api/v1{path}").status_code == 401, name


def test_changing_operation_refuses_session_cookie(owner_client: Client) -> None:
    for name, (method, path) in list_operations().items():
        if method != "GET":
            assert owner_client.generic(method, f"/api/v1{path}").status_code == 401, name
