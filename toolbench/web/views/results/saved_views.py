"""Views that save a page of results under a name, and delete saved views."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from toolbench.lab.results.saved_views import SavedViewError, delete_view, save_view
from toolbench.web.requests import Action, choose_local_path, find_user, record, redirect_refused
from toolbench.web.roles import Role, require_roles


@require_roles(change=Role.VIEWER)
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Save the page in the field `address` under the name in the field `name`; redirect to the page."""
    address, user = request.POST.get("address", ""), find_user(request)
    assert user is not None
    url = choose_local_path(address, "/matrix/")
    try:
        view = save_view(user, request.POST.get("name", ""), address, shared=request.POST.get("shared") == "1")
    except SavedViewError as error:
        return redirect_refused(request, str(error), url)
    if view.shared:
        record(request, Action.ADDED, f"shared view {view.name}", view.address)
    messages.success(request, f"Saved the view {view.name}.")
    return HttpResponseRedirect(url)


@require_roles(change=Role.VIEWER)
@require_POST
def delete(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a saved view and redirect to the page in the field `address`."""
    user = find_user(request)
    assert user is not None
    try:
        name = delete_view(user, view_id)
    except SavedViewError as error:
        messages.error(request, str(error))
    else:
        record(request, Action.DELETED, f"view {name}")
        messages.success(request, f"Deleted the view {name}.")
    return HttpResponseRedirect(choose_local_path(request.POST.get("address", ""), "/matrix/"))
