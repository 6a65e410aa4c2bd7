"""HTML documents: the report file of a run, and the pages of share links."""

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils import timezone

from toolbench.installation import ASSETS
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.interchange.file_json import encode_text
from toolbench.lab.models import Run, ShareLink, Trial
from toolbench.lab.results.compare.page import get_sides_page
from toolbench.lab.results.compare.query import SUCCESS_METRICS, CompareQuery
from toolbench.lab.results.filter_labels import find_filter_label
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial.page_query import CONVERSATION
from toolbench.lab.results.trial_list.filter import TrialFilter

STYLE_SHEETS = ("tokens", "base", "components", "shared")


class PageUnavailableError(Exception):
    """Raised when the run, comparison or trial of a page cannot be shown; the message gives the reason."""


def render_run_report(run_id: int) -> bytes:
    """Return the page of a run as one HTML file that contains its style sheets.

    Raises:
        PageUnavailableError: there is no such run.
    """
    return _render_run(run_id, _read_styles())


def render_shared_page(link: ShareLink) -> bytes:
    """Return the page of a share link, which loads its style sheets from this site.

    Raises:
        PageUnavailableError: the run or trial no longer exists, or the comparison cannot be shown.
    """
    if link.kind == ShareLink.Kind.RUN and link.target is not None:
        return _render_run(link.target, "")
    if link.kind == ShareLink.Kind.TRIAL and link.target is not None:
        return _render_trial(link.target)
    if sentence := _find_comparison_error(link.query):
        raise PageUnavailableError(sentence)
    query = CompareQuery.from_query(QueryDict(link.query))
    page = get_sides_page(query)
    if page.pair is None:
        context = {"comparison": page.comparison, "metric": SUCCESS_METRICS[query.metric]}
        return _render("shared/sides.html", context, "")
    return _render("shared/comparison.html", {"comparison": page.pair.comparison}, "")


def check_shareable(kind: str, query: str) -> None:
    """Check that the comparison of a new link can be shared; `create_share_link` checks runs and trials.

    Raises:
        InvalidFieldsError: the query string cannot be read, does not select two or more sides, or selects published
            figures.
    """
    if kind == ShareLink.Kind.COMPARISON and (sentence := _find_comparison_error(query)):
        raise InvalidFieldsError({"query": [sentence]})


def _find_comparison_error(query: str) -> str:
    """Return why the comparison of a query string cannot be shared; "" if it can."""
    parsed = CompareQuery.from_query(QueryDict(query))
    if parsed.ignored:
        labels = ", ".join(map(find_filter_label, parsed.ignored))[:200]
        return f"The comparison cannot be shared. Correct these filters first: {labels}."
    if not parsed.is_complete or parsed.is_published:
        return "Compare two or more sides with trials first, then share the comparison."
    return ""


def _render_run(run_id: int, style: str) -> bytes:
    try:
        page = get_run_page(run_id)
    except Run.DoesNotExist:
        raise PageUnavailableError(f"There is no run {run_id}; it may have been deleted.") from None
    return _render("shared/run.html", {"page": page}, style)


def _render_trial(trial_id: int) -> bytes:
    try:
        page = get_trial_page(trial_id, TrialFilter(), view=CONVERSATION)
    except Trial.DoesNotExist:
        raise PageUnavailableError(f"There is no trial {trial_id}; its run may have been deleted.") from None
    return _render("shared/trial.html", {"page": page}, "")


def _render(template: str, context: dict[str, object], style: str) -> bytes:
    """Return the document with known secrets masked.

    Args:
        template: a template that extends `_shared.html`.
        context: variables of the template.
        style: content of the style sheets, to be part of the document; "" for links to them.
    """
    text = render_to_string(template, context | {"style": style, "written_at": timezone.now()})
    return load_known_secrets().masker.mask_body(encode_text(text), join_parts=False)


def _read_styles() -> str:
    folder = ASSETS / "static" / "css"
    return "\n".join((folder / f"{name}.css").read_text() for name in STYLE_SHEETS)
