"""Masking of known secrets in the API's JSON responses, and in files with stored bytes."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from toolbench.lab.credentials.known_secrets import load_known_secrets


def mask_response(response: HttpResponseBase) -> HttpResponseBase:
    """Mask known secrets in the body of a JSON response, in place, and return the response.

    An empty response and one that is not JSON are returned unchanged. So is a streaming response: its chunks may split
    a secret or be compressed, so the functions that generate them mask what they write.
    """
    if isinstance(response, HttpResponse) and "json" in response.headers.get("Content-Type", "") and response.content:
        # Each text in an API document is complete, so no secret is split over several texts.
        response.content = load_known_secrets().masker.mask_body(response.content, join_parts=False)
    return response


def build_masked_file(content: bytes, name: str) -> HttpResponse:
    """Return bytes as a download named `name`, with known secrets masked."""
    masked = load_known_secrets().masker.mask_body(content)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(masked, content_type="application/octet-stream", headers=headers)
