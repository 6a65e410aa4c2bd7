"""Responses that a browser saves as a file instead of displaying them."""

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.web.exports import WRITERS


def build_file_response(content: str | bytes, content_type: str, *, name: str) -> HttpResponse:
    """Return a file. `name` must be plain ASCII."""
    return HttpResponse(content, headers=_build_headers(content_type, name))


def build_streamed_response(pieces: Iterable[bytes], content_type: str, *, name: str) -> StreamingHttpResponse:
    """Return a file that is sent while it is made. `name` must be plain ASCII."""
    return StreamingHttpResponse(pieces, headers=_build_headers(content_type, name))


def build_table_response(table: ExportTable, kind: str, *, name: str) -> HttpResponse:
    """Return a table as a file. `kind` is a key of WRITERS and the extension of the name."""
    write, content_type = WRITERS[kind]
    return build_file_response(write(table), content_type, name=f"{name}.{kind}")


def _build_headers(content_type: str, name: str) -> dict[str, str]:
    return {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}
