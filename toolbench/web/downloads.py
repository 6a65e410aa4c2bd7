"""Responses that a browser saves as files, among them tables as CSV, JSON, JSON lines or Markdown."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from django.http import HttpResponse, StreamingHttpResponse

from toolbench.lab.interchange.masked_table import mask_table
from toolbench.lab.interchange.streamed_file import join_text_parts
from toolbench.lab.metrics.export_table import ExportTable, StreamedTable, Value

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
    """Return a table as a file, with known secrets masked.

    Args:
        table: the table.
        file_format: a key of `WRITERS`; it becomes the file's extension.
        name: the file's name without extension, in ASCII.
    """
    write, content_type = WRITERS[file_format]
    return build_file_response("".join(write(mask_table(table))), content_type, name=f"{name}.{file_format}")


def stream_table_response(table: StreamedTable, file_format: str, *, name: str) -> StreamingHttpResponse:
    """Return a table as a file that is sent while its rows are read; arguments as of `build_table_response`."""
    write, content_type = WRITERS[file_format]
    chunks = join_text_parts(write(mask_table(table)))
    return build_streamed_response(chunks, content_type, name=f"{name}.{file_format}")


def _build_headers(content_type: str, name: str) -> dict[str, str]:
    return {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}


class _Echo:
    """File for `csv.writer` that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def iter_csv(table: StreamedTable) -> Iterator[str]:
    """Yield the table as lines of CSV, with an apostrophe before text that a spreadsheet would run as a formula."""
    writer = csv.writer(_Echo())
    yield writer.writerow(table.columns)
    for row in table.rows:
        yield writer.writerow([_escape_formula(value) for value in row])


def iter_json(table: StreamedTable) -> Iterator[str]:
    """Yield the table as one JSON object: version, title, notes, rows and, if there are any, `times`."""
    head = {"version": EXPORT_VERSION, "title": table.title, "notes": table.notes}
    yield _dump_indented(head).removesuffix("\n}") + ',\n "rows": ['
    separator, end = "\n  ", "]"
    for row in table.rows:
        yield f"{separator}{_dump_indented(dict(zip(table.columns, row, strict=True)), level=2)}"
        separator, end = ",\n  ", "\n ]"
    yield end
    if table.times:
        yield f',\n "times": {_dump_indented(table.times, level=1)}'
    yield "\n}"


def iter_json_lines(table: StreamedTable) -> Iterator[str]:
    """Yield each row as one JSON object in a line, without title and notes."""
    for row in table.rows:
        yield f"{json.dumps(dict(zip(table.columns, row, strict=True)), ensure_ascii=False)}\n"


def iter_markdown(table: StreamedTable) -> Iterator[str]:
    """Yield title, notes and rows as Markdown. `markdown_columns`, unless empty, limits the columns."""
    column_indexes = [table.columns.index(name) for name in table.markdown_columns or table.columns]
    yield f"# {table.title}\n\n"
    yield from (f"- {note}\n" for note in table.notes)
    yield f"\n{_render_row([table.columns[index] for index in column_indexes])}\n"
    yield f"{_render_row(['---'] * len(column_indexes))}\n"
    for row in table.rows:
        yield f"{_render_row([_render_cell(row[index]) for index in column_indexes])}\n"


def _dump_indented(value: object, *, level: int = 0) -> str:
    """Return a value as indented JSON, whose lines after the first begin with `level` further spaces."""
    return json.dumps(value, ensure_ascii=False, indent=1).replace("\n", "\n" + level * " ")


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


# By file format: the generator of the content, and the content type.
WRITERS: Mapping[str, tuple[Callable[[StreamedTable], Iterator[str]], str]] = {
    "csv": (iter_csv, "text/csv; charset=utf-8"),
    "json": (iter_json, "application/json"),
    "jsonl": (iter_json_lines, "application/jsonl"),
    "md": (iter_markdown, "text/markdown; charset=utf-8"),
}
