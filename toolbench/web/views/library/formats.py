"""View of the format viewer, which parses a text with every text format."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from toolbench.lab.endpoints.format_table import get_text_format_rows
from toolbench.lab.endpoints.format_viewer import parse_with_every_format
from toolbench.web.forms.formats import FormatForm
from toolbench.web.rendering import render_page
from toolbench.web.roles import Role, require_roles


@require_roles(change=Role.VIEWER)
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """Show the form and the table of text formats; on POST, show the calls that each format parsed.

    ?family= fills in the example of a model family. The text is neither stored nor sent to a model.
    """
    form = FormatForm.from_request(request.POST or None, family=request.GET.get("family", ""))
    is_valid = form.is_valid()
    readings = parse_with_every_format(form.cleaned_data["text"], form.cleaned_data["tools"]) if is_valid else None
    rows = () if readings else get_text_format_rows()
    return render_page(request, "formats/show.html", {"form": form, "readings": readings, "rows": rows})
