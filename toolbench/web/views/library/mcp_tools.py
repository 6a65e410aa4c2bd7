"""View that reads the tools of an MCP server into the form of a new test case."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.providers.mcp.server import ToolListError
from toolbench.web.forms.case_sources import McpToolsForm, build_case_form
from toolbench.web.forms.cases import CaseRunForm
from toolbench.web.rendering import render_page

TOOLS_NOTE = "The tools are filled in as the server declares them. Trials simulate them and never call the server."


@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: HttpRequest) -> HttpResponse:
    """Show the form for a server; on POST, list its tools, or fill in the form of a new case with the chosen tools."""
    if "choose" in request.POST:
        return _fill_case(request)
    form = McpToolsForm(request.POST or None)
    context = {"form": form, "choices": form.read_choices(), "problem": form.file_error}
    return render_page(request, "cases/mcp.html", context, status=422 if form.errors else 200)


def _fill_case(request: HttpRequest) -> HttpResponse:
    try:
        case_form = build_case_form(request.POST.getlist("tool"))
    except ToolListError as error:
        context = {"form": McpToolsForm(), "choices": None, "problem": str(error)}
        return render_page(request, "cases/mcp.html", context, status=422)
    case_context = {
        "form": case_form,
        "run_form": CaseRunForm(),
        "note": TOOLS_NOTE,
        "page": None,
        "action": reverse("case-new"),
    }
    return render_page(request, "cases/edit.html", case_context)
