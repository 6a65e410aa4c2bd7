"""Requests that schemathesis generates from the OpenAPI document, against the WSGI application of this process."""

import json
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from toolbench.lab.models import Probe
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import save_record

NOBODY = "http://127.0.0.1:9"  # nothing listens there
# A schema cannot express names that do not exist, states that forbid an action and rules on several fields.
ANSWERS_TO_VALID_REQUESTS = {401, 403, 404, 409, 422, 429}
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    missing_required_header,
    unsupported_method,
]
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


def load_schema(*, every_boundary: bool) -> schemathesis.BaseSchema:
    """Return the OpenAPI document as a schema of schemathesis.

    Args:
        every_boundary: whether to test each bound of each field: about 40 requests per operation.
    """
    config = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": every_boundary}}})
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application(), config=config)


def make_rows() -> dict[str, Any]:
    """Make a row for each kind of path parameter and return the parameters' values by name."""
    model = make_model(provider=make_provider("Generated", base_url=NOBODY))
    trial = make_trial(make_cell(make_config(make_run(), model)), "fail")
    step = make_step(trial)
    probe = Probe.objects.create(model=model, provider=model.provider, kind="first_use", state="done")
    return {
        "run_id": trial.run_id,
        "trial_id": trial.pk,
        "cell_id": trial.cell_id,
        "config_id": trial.config_id,
        "step_id": step.pk,
        "probe_id": probe.pk,
        "model_id": model.pk,
        "provider_id": model.provider_id,
        "record_id": save_record(DecideQuery(), owner=None).pk,
    }


def send_and_check(case: schemathesis.Case[Any], secret: str, known: dict[str, Any]) -> None:
    """Send a generated request and check the answer; about every second valid request names existing rows."""
    is_valid = case.meta is None or case.meta.generation.mode == GenerationMode.POSITIVE
    if is_valid and len(json.dumps(case.query, default=str)) % 2:
        case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
    response = case.call(headers={"Authorization": f"Bearer {secret}"})
    case.validate_response(response, checks=CHECKS)
    if is_valid:
        assert response.status_code < 400 or response.status_code in ANSWERS_TO_VALID_REQUESTS, response.text
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"]
        assert json.loads(response.text)["detail"]
