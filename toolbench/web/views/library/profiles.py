"""Views of sampling profiles: list, create, edit with versions, delete."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods, require_safe

from toolbench.lab.endpoints.setup_pages import get_profiles
from toolbench.lab.library.profiles import ProfilePage, get_profile_page
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.forms.profiles import ProfileForm
from toolbench.web.library_entries import EntryKind, create_entry, delete_entry, edit_entry
from toolbench.web.rendering import render_page


@require_safe
def list_profiles(request: HttpRequest) -> HttpResponse:
    """Show the sampling profiles (GET /profiles/)."""
    return render_page(request, "profiles/show.html", {"profiles": get_profiles()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new profile, filled in from the profile named by ?copy=; on POST, save it."""
    return create_entry(request, _KIND)


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a profile and its versions; on POST, save a new version.

    ?old= and ?new= choose the versions whose difference is shown.
    """
    return edit_entry(request, _KIND, slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the profile, or archive it if a run used it."""
    return delete_entry(request, _KIND, slug)


def _get_page(request: HttpRequest, name: str) -> ProfilePage:
    old, new = (parse_whole_number(request.GET.get(side, "")) for side in ("old", "new"))
    return get_profile_page(name, old, new)


_KIND = EntryKind(
    plural="Sampling profiles",
    url_name="profile",
    place_in_new_run="",
    form=ProfileForm,
    get_page=_get_page,
)
