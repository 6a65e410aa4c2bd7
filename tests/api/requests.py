"""Client that sends JSON requests to the API through all middleware."""

import json
from typing import Any, cast

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.test import Client

PREFIX = "/api/v1"


class ApiClient:
    """Django's test client with an API token. An answer with an unexpected status fails the test."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._client = Client()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        """Send a request and return its answer, whatever the status."""
        all_headers = {"Authorization": f"Bearer {self.secret}"} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        data, kind = ("", "application/octet-stream") if body is None else (json.dumps(body), "application/json")
        answer: Any = self._client.generic(method, PREFIX + path, data, kind, headers=all_headers)
        assert isinstance(answer, HttpResponseBase)
        return cast(HttpResponse, answer)

    def get(self, path: str) -> Any:
        return self._expect(self.send("GET", path), 200)

    def post(self, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        return self._expect(self.send("POST", path, body, **headers), status)

    def problem(self, method: str, path: str, body: Any = None, *, status: int) -> Any:
        """Send a request and return its problem document."""
        answer = self.send(method, path, body)
        assert answer.headers["Content-Type"] == "application/problem+json", answer.content[:500]
        found = self._expect(answer, status)
        assert found["status"] == status
        assert found["detail"][-1] in ".?", found
        return found

    def _expect(self, answer: HttpResponse, status: int) -> Any:
        assert answer.status_code == status, answer.content[:2000]
        return json.loads(answer.content) if answer.content else None
