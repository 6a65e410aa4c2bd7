"""Answers that hold what endpoints sent, searched once more for every known secret, as exports are."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema

from toolbench.api.bodies import JSON_TYPE, JsonRenderer
from toolbench.lab.credentials.known_secrets import load_known_secrets


def build_masked_answer(request: HttpRequest, document: type[Schema], values: Any) -> HttpResponse:
    """Return values as a document in which known secrets are overwritten."""
    dumped = document.model_validate(values, from_attributes=True).model_dump(mode="json")
    text = JsonRenderer().render(request, dumped, response_status=200)
    masked = load_known_secrets().masker.mask_body(text.encode(), parts=False)
    return HttpResponse(masked, content_type=JSON_TYPE)


def build_masked_file(content: bytes, name: str) -> HttpResponse:
    """Return bytes as a download in which known secrets are overwritten with equal length."""
    masked = load_known_secrets().masker.mask_body(content)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(masked, content_type="application/octet-stream", headers=headers)
