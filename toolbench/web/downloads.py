"""Responses that a browser saves as files, among them tables as CSV, JSON, JSON lines or Markdown."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping

from django.http import HttpResponse, StreamingHttpResponse

from toolbench.lab.metrics.export_table import ExportTable, Value

EXPORT_VERSION = 2  # of JSON tables; version 1 had neither a version number nor bounds of quantiles
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def build_file_response(content: str | bytes, content_type: str, *, name: str) -> HttpResponse:
    """Return a response that the browser saves as file `name`, which must be ASCII."""
    return HttpResponse(content, headers=_build_headers(content_type, name))


def build_streamed_response(chunks: Iterable[bytes], content_type: str, *, name: str) -> StreamingHttpResponse:
    """Return a response that is sent while `chunks` are generated.

    The browser saves it as file `name`, which must be ASCII.
    """
    return StreamingHttpResponse(chunks, headers=_build_headers(content_type, name))


def build_table_response(table: ExportTable, file_format: str, *, name: str) -> HttpResponse:
    """Return a table as a file.

    Args:
        table: the table.
        file_format: a key of `WRITERS`; it becomes the file's extension.
        name: the file's name without extension, in ASCII.
    """
    write, content_type = WRITERS[file_format]
    return build_file_response(write(table), content_type, name=f"{name}.{file_format}")


def _build_headers(content_type: str, name: str) -> dict[str, str]:
    return {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}


def render_csv(table: ExportTable) -> str:
    """Return the table as CSV, with an apostrophe before text that a spreadsheet would run as a formula."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(table.columns)
    writer.writerows([_escape_formula(value) for value in row] for row in table.rows)
    return buffer.getvalue()


def render_json(table: ExportTable) -> str:
    """Return the table as one JSON object: version, title, notes, rows and, if there are any, `times`."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    document = {"version": EXPORT_VERSION, "title": table.title, "notes": table.notes, "rows": rows}
    document |= {"times": table.times} if table.times else {}
    return json.dumps(document, ensure_ascii=False, indent=1)


def render_json_lines(table: ExportTable) -> str:
    """Return the rows as one JSON object a line, without title and notes."""
    rows = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def render_markdown(table: ExportTable) -> str:
    """Return the table as Markdown, only with its `brief` columns if it names some."""
    column_indexes = [table.columns.index(name) for name in table.brief or table.columns]
    lines = [f"# {table.title}", "", *(f"- {note}" for note in table.notes), ""]
    lines += [
        _render_row([table.columns[index] for index in column_indexes]),
        _render_row(["---"] * len(column_indexes)),
    ]
    return "\n".join(
        [*lines, *(_render_row([_render_cell(row[index]) for index in column_indexes]) for row in table.rows), ""]
    )


def _render_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(value: Value) -> str:
    text = "" if value is None else str(value)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _escape_formula(value: Value) -> Value:
    """Return the value, with an apostrophe before a text that begins like a formula.

    A text of one character is no formula.
    """
    return f"'{value}" if isinstance(value, str) and len(value) > 1 and value.startswith(FORMULA_STARTS) else value


WRITERS: Mapping[str, tuple[Callable[[ExportTable], str], str]] = {
    "csv": (render_csv, "text/csv; charset=utf-8"),
    "json": (render_json, "application/json"),
    "jsonl": (render_json_lines, "application/jsonl"),
    "md": (render_markdown, "text/markdown; charset=utf-8"),
}
