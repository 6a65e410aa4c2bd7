"""View that reads the tools of an MCP server into the form of a test case or of the playground."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.cases.mcp_tools import build_draft_from_tools
from toolbench.providers.mcp.server import ToolListError
from toolbench.web.conversation_pages import render_new_conversation
from toolbench.web.forms.case_sources import McpToolsForm
from toolbench.web.forms.cases import CaseForm, CaseRunForm
from toolbench.web.forms.playground import MessageForm, MessageRunForm
from toolbench.web.rendering import render_page

TOOLS_NOTE = "The tools are filled in as the server declares them. Trials simulate them and never call the server."


@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: HttpRequest) -> HttpResponse:
    """Show the form for a server; on POST, list the server's tools.

    With the field `choose`, show the form of a test case or of a conversation with the chosen tools instead.
    """
    if "choose" in request.POST:
        return _fill_case(request)
    form = McpToolsForm(request.POST or None)
    context = {"form": form, "choices": form.request_choices(), "problem": form.file_error}
    return render_page(request, "cases/mcp.html", context, status=422 if form.errors else 200)


def _fill_case(request: HttpRequest) -> HttpResponse:
    """Show the form of a test case or of a conversation with the chosen tools.

    If no tool is chosen or one cannot be read, show the form for the same server again, with the error.
    """
    try:
        draft = build_draft_from_tools(request.POST.getlist("tool"))
    except ToolListError as error:
        form = McpToolsForm(initial=request.POST.dict())
        mcp_context = {"form": form, "choices": None, "problem": str(error)}
        return render_page(request, "cases/mcp.html", mcp_context, status=422)
    if request.POST["choose"] == "playground":
        return render_new_conversation(request, MessageForm.from_draft(draft), MessageRunForm(), TOOLS_NOTE)
    context = {"form": CaseForm.from_draft(draft), "run_form": CaseRunForm(), "note": TOOLS_NOTE, "page": None}
    return render_page(request, "cases/edit.html", context | {"action": reverse("case-new")})
