"""Operations on share links and on the files of a run."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router, Status
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, Id, QuerySchema
from toolbench.api.documents.results import TableDocument, iter_table_json
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.accounts.share_links import (
    MAX_QUERY_CHARACTERS,
    build_link_token,
    create_share_link,
    list_share_links,
    revoke_share_link,
)
from toolbench.lab.interchange.bundle.selection import BundleError, UnknownRunError
from toolbench.lab.interchange.bundle.write import iter_bundle_chunks
from toolbench.lab.interchange.inspect_ai.write import iter_log_zip
from toolbench.lab.interchange.otlp.write import TrialNotFoundError, iter_run_lines, render_trial_line
from toolbench.lab.interchange.report.html_page import PageUnavailableError, check_shareable, render_run_report
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.interchange.report.write import ReportError, iter_report_zip
from toolbench.lab.interchange.streamed_file import join_text_parts
from toolbench.lab.models import ShareLink

router = Router()


class ShareLinkBody(BodySchema):
    """New share link.

    Attributes:
        kind: what the link shows: a run, a comparison of sides, or a trial.
        target: id of the run or trial; null for a comparison.
        query: query string of the comparison, as for GET /compare; "" for a run or trial.
        days: days after which the link expires.
    """

    kind: Literal["run", "comparison", "trial"]
    target: Id | None = None
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARACTERS)] = ""
    days: Literal[1, 7, 30, 90] = 7


class ShareLinkDocument(Schema):
    """Valid share link.

    Attributes:
        target: id of the run or trial; null for a comparison.
        query: query string of the comparison; "" for a run or trial.
        made_by: name of the user who created it.
        url: path of the link on this site.
    """

    id: int
    kind: Literal["run", "comparison", "trial"]
    target: int | None
    query: str
    made_by: str
    expires_at: datetime
    url: str


class PrivateQuery(QuerySchema):
    """Choice of what a file includes.

    Attributes:
        private: whether the file includes the trials of private test cases. If false and the run has only private
            test cases, the answer is 409.
    """

    private: bool = False


@router.get("/share-links", response=list[ShareLinkDocument], auth=LAUNCH)
def list_links(request: HttpRequest) -> list[dict[str, Any]]:
    """List the newest 200 of your valid share links; an owner gets the links of all users."""
    return [_build_link(link) for link in list_share_links(get_user(request))]


@router.post("/share-links", response={201: ShareLinkDocument}, auth=LAUNCH)
def make_link(request: HttpRequest, body: ShareLinkBody) -> Status[dict[str, Any]]:
    """Create a link that shows one run, comparison or trial to readers without an account."""
    check_shareable(body.kind, body.query)
    link = create_share_link(get_user(request), body.kind, target=body.target, query=body.query, days=body.days)
    record(request, Action.ADDED, f"share {link}", "/settings/links/")
    return Status(201, _build_link(link))


@router.delete("/share-links/{int:link_id}", response={204: None}, auth=LAUNCH)
def revoke_link(request: HttpRequest, link_id: int) -> Status[None]:
    """Revoke one of your valid share links; an owner may revoke any."""
    link = revoke_share_link(get_user(request), link_id)
    if link is None:
        raise Http404("There is no such link; it may have expired or been revoked already.")
    record(request, Action.REVOKED, f"share {link}", "/settings/links/")
    return Status(204, None)


@router.get("/runs/{int:run_id}/report.html", auth=READ)
def download_report_page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return a run as one HTML file that opens offline."""
    try:
        return HttpResponse(
            render_run_report(run_id), headers=_build_headers("text/html; charset=utf-8", run_id, "html")
        )
    except PageUnavailableError as error:
        raise Http404(str(error)) from error


@router.get("/runs/{int:run_id}/report.zip", auth=READ)
def download_report(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return the report of a run as a zip archive: a JSON file for each finished trial, summaries, and the matrix."""
    try:
        return _stream_zip(iter_report_zip(run_id), run_id, "run")
    except ReportError as error:
        raise Http404(str(error)) from error


@router.get("/runs/{int:run_id}/bundle.zip", auth=READ)
def download_bundle(request: HttpRequest, run_id: int, query: Query[PrivateQuery]) -> HttpResponseBase:
    """Return the evidence bundle of a run, which another installation can import."""
    return _stream_zip(_export(iter_bundle_chunks, run_id, query), run_id, "bundle")


@router.get("/runs/{int:run_id}/inspect.zip", auth=READ)
def download_inspect_logs(request: HttpRequest, run_id: int, query: Query[PrivateQuery]) -> HttpResponseBase:
    """Return a run as a zip archive of logs of Inspect AI, one for each configuration."""
    return _stream_zip(_export(iter_log_zip, run_id, query), run_id, "inspect")


@router.get("/runs/{int:run_id}/otlp.jsonl", auth=READ)
def download_run_spans(request: HttpRequest, run_id: int, query: Query[PrivateQuery]) -> HttpResponseBase:
    """Return the finished trials of a run as lines of OTLP JSON, one trial a line."""
    lines = _export(iter_run_lines, run_id, query)
    return StreamingHttpResponse(lines, headers=_build_headers("application/jsonl", run_id, "otlp.jsonl"))


@router.get("/trials/{int:trial_id}/otlp.jsonl", auth=READ)
def download_trial_spans(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Return a finished trial as one line of OTLP JSON; 404 for a trial that has not ended."""
    try:
        return HttpResponse(render_trial_line(trial_id), content_type="application/jsonl")
    except TrialNotFoundError as error:
        raise Http404(str(error)) from error


@router.get("/runs/{int:run_id}/trials", response=TableDocument, auth=READ)
def export_run_trials(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return one row for each trial of a run, like the export of the run's page."""
    try:
        parts = iter_table_json(export_trials(run_id))
        return StreamingHttpResponse(join_text_parts(parts), content_type="application/json")
    except ReportError as error:
        raise Http404(str(error)) from error


def _export(iter_chunks: Callable[..., Iterator[bytes]], run_id: int, query: PrivateQuery) -> Iterator[bytes]:
    """Return the chunks of an export.

    Args:
        iter_chunks: function that takes the id of a run and `private`, and returns the chunks.
        run_id: id of the run.
        query: whether private test cases are included.

    Raises:
        Http404: there is no such run.
        ProblemError: nothing would be exported.
    """
    try:
        return iter_chunks(run_id, private=query.private)
    except UnknownRunError as error:
        raise Http404(str(error)) from error
    except BundleError as error:
        raise ProblemError(409, str(error)) from error


def _stream_zip(chunks: Iterator[bytes], run_id: int, kind: str) -> StreamingHttpResponse:
    return StreamingHttpResponse(chunks, headers=_build_headers("application/zip", run_id, "zip", kind))


def _build_headers(content_type: str, run_id: int, suffix: str, kind: str = "run") -> dict[str, str]:
    """Return the headers of a file, with the file name that the download on the run's page has, too."""
    name = f"toolbench-{kind}-{run_id}.{suffix}"
    return {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}


def _build_link(link: ShareLink) -> dict[str, Any]:
    """Return the values of a ShareLinkDocument."""
    names = ("id", "kind", "target", "query", "expires_at")
    return {name: getattr(link, name) for name in names} | {
        "made_by": link.user.username,
        "url": f"/shared/{build_link_token(link)}/",
    }
