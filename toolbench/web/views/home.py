"""View of the home page: first steps, the demonstration run, newest failures and open alerts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.endpoints.connect import OTHER_ENDPOINT_TITLE
from toolbench.lab.endpoints.local_servers import scan_local_servers
from toolbench.lab.results.home import get_home_page
from toolbench.lab.runs.local_demo import get_local_demo
from toolbench.lab.schedules.page import list_open_alerts
from toolbench.web.rendering import is_part_request, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """Show the home page, or only the demonstration run for htmx; on POST, detect local model servers."""
    if request.method == "POST":
        scan_local_servers()
        return redirect(f"{reverse('first')}#connect")
    context: dict[str, object] = {"local": get_local_demo()}
    if not is_part_request(request):
        context |= {"page": get_home_page(), "alerts": list_open_alerts(), "other_endpoint": OTHER_ENDPOINT_TITLE}
    return render_page(request, "home/show.html", context, part="local")
