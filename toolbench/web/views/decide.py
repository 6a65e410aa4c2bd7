"""Deciding: a rule over what was measured."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.decisions.decide_page import get_decide_page
from toolbench.lab.decisions.decide_query import DecideQuery
from toolbench.web.charts import decide_chart, with_inline_styles
from toolbench.web.pages import page


@require_safe
@with_inline_styles
def show(request: HttpRequest) -> HttpResponse:
    """GET /decide/. The address holds scope, rule and filter."""
    shown = get_decide_page(DecideQuery.from_query(request.GET))
    return page(request, "decide/show.html", {"page": shown, "query": shown.query, "chart": decide_chart(shown)})
