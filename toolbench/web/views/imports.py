"""What was tried elsewhere: the list, and a file to import."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.bundles.opening import ImportRefused
from toolbench.lab.run_page import get_runs
from toolbench.web.forms.imports import take
from toolbench.web.pages import page


@require_safe
def list(request: HttpRequest) -> HttpResponse:
    return page(request, "imports/list.html", {"lines": get_runs(imported=True)})


@require_POST
def new(request: HttpRequest) -> HttpResponse:
    owner = request.user if isinstance(request.user, User) else None
    try:
        run = take(request.FILES.get("file"), owner)
    except ImportRefused as refused:
        messages.error(request, str(refused))
        return redirect("imported")
    messages.success(request, f"Run {run.pk} is imported with {run.trial_count} trials.")
    return redirect("run", run.pk)
