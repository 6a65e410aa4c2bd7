"""Answers that a browser keeps as a file and never shows."""

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.web.exports import WRITERS


def as_file(content: str | bytes, content_type: str, *, name: str) -> HttpResponse:
    """`name` is plain ASCII."""
    return HttpResponse(content, headers=_headers(content_type, name))


def streamed_file(pieces: Iterable[bytes], content_type: str, *, name: str) -> StreamingHttpResponse:
    """The same, sent while it is made."""
    return StreamingHttpResponse(pieces, headers=_headers(content_type, name))


def table_file(table: ExportTable, kind: str, *, name: str) -> HttpResponse:
    """`kind` is one of WRITERS, and the ending of the name."""
    write, content_type = WRITERS[kind]
    return as_file(write(table), content_type, name=f"{name}.{kind}")


def _headers(content_type: str, name: str) -> dict[str, str]:
    return {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}
