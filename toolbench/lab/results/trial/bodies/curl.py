"""Rendering of a stored request as a curl command for a POSIX shell.

The command reads the key from $API_KEY. Other secrets are masked, as they are stored.
"""

import re
import shlex
from collections.abc import Mapping

from django.db.models import F

from toolbench.lab.models import Step, StepBody
from toolbench.lab.traces.step_facts import load_details

MAX_ARGUMENT_BYTES = 100_000  # Linux allows 131,072 bytes in one argument
KEY_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"})
_HEADERS_SET_BY_CURL = frozenset({"content-length", "host", "accept-encoding", "connection", "transfer-encoding"})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTH_SCHEME = re.compile(r"(?:(?:Bearer|Basic|Token|ApiKey|Key) )?", re.IGNORECASE)
NO_REQUEST = "# No request of this step is stored.\n"
TRUNCATED_NOTE = "# The stored body is truncated: the request had more bytes.\n"
NUL_NOTE = "# NUL bytes of the body are left out, since no shell can pass them on.\n"


def get_curl(step_id: int) -> bytes:
    """Return the request of a step as a curl command, or a comment if no request is stored.

    Raises:
        Step.DoesNotExist: the step does not exist, or its run was deleted.
    """
    step = Step.objects.get(pk=step_id, trial__run__deleted_at=None)
    if step.kind != Step.Kind.EXCHANGE or not step.url:
        return NO_REQUEST.encode()
    row = StepBody.objects.filter(pk=step.pk).values_list(F("request"), F("facts")).first()
    body, facts = (bytes(row[0]), load_details(row[1])) if row else (b"", {})
    if not body:  # a rule of retention removes the bodies but keeps the URL
        return NO_REQUEST.encode()
    truncated_note = TRUNCATED_NOTE if step.body_cut and step.request_bytes > len(body) else ""
    nul_note = NUL_NOTE if b"\0" in body else ""
    headers = facts.get("request_headers") or {}
    return f"{truncated_note}{nul_note}".encode() + render_curl(step.url, headers, body.replace(b"\0", b"")) + b"\n"


def render_curl(url: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a request as a curl command, quoted for a POSIX shell.

    A body that is too long for an argument is piped from `printf`, which is built into the shell and so has no limit.

    Args:
        url: the URL; with the option -g, curl takes its brackets and braces literally.
        headers: values by name. Headers that curl sets itself, and headers with invalid names, are left out.
        body: bytes of the body, without NUL.
    """
    names = [name for name in headers if _HEADER_NAME.fullmatch(name) and name.lower() not in _HEADERS_SET_BY_CURL]
    lines = [f"curl -g {shlex.quote(url)}", *(f"-H {_quote_header(name, str(headers[name]))}" for name in names)]
    command = " \\\n  ".join(lines).encode("utf-8", "surrogateescape")
    quoted = shlex.quote(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if len(quoted) > MAX_ARGUMENT_BYTES:
        return b"printf %s " + quoted + b" | " + command + b" \\\n  --data-binary @-"
    return command + b" \\\n  --data-raw " + quoted


def _quote_header(name: str, value: str) -> str:
    """Return a header as a shell argument. In a header of KEY_HEADERS, $API_KEY replaces the key.

    A scheme before the key, such as `Bearer`, is kept.
    """
    value = " ".join(value.split("\n")).replace("\r", "").replace("\0", "")
    if name.lower() in KEY_HEADERS:
        scheme = _AUTH_SCHEME.match(value)
        return shlex.quote(f"{name}: {scheme[0] if scheme else ''}") + '"$API_KEY"'
    return shlex.quote(f"{name}: {value}" if value else f"{name};")  # curl drops a header that ends with a colon
