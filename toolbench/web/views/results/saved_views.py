"""Views that save and delete a page of results under a name."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from toolbench.lab.results.saved_views import SavedViewError, delete_view, save_view
from toolbench.web.requests import Action, choose_local_path, find_owner, record
from toolbench.web.roles import Role, require_roles


@require_roles(change=Role.VIEWER)
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Save the page of the form's address under its name, and go back to it."""
    address, user = request.POST.get("address", ""), find_owner(request)
    assert user is not None
    try:
        view = save_view(user, request.POST.get("name", ""), address, shared=request.POST.get("shared") == "1")
    except SavedViewError as refused:
        messages.error(request, str(refused))
    else:
        if view.shared:
            record(request, Action.ADDED, f"shared view {view.name}", view.address[:300])
        messages.success(request, f"Saved the view {view.name}.")
    return HttpResponseRedirect(choose_local_path(address, "/matrix/"))


@require_roles(change=Role.VIEWER)
@require_POST
def delete(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a view, and go back to the page of the form's address."""
    user = find_owner(request)
    assert user is not None
    try:
        name = delete_view(user, view_id)
    except SavedViewError as refused:
        messages.error(request, str(refused))
    else:
        record(request, Action.DELETED, f"view {name}")
        messages.success(request, f"Deleted the view {name}.")
    return HttpResponseRedirect(choose_local_path(request.POST.get("address", ""), "/matrix/"))
