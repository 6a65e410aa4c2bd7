"""Views of sampling profiles: list, create, edit with versions, delete."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from toolbench.lab.endpoints.setup_pages import get_profiles
from toolbench.lab.library.profiles import ProfilePage, delete_profile, get_profile_page
from toolbench.lab.models import SamplingProfile
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.web.forms.profiles import ProfileForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_username, record


@require_safe
def list_profiles(request: HttpRequest) -> HttpResponse:
    """Show the sampling profiles (GET /profiles/)."""
    return render_page(request, "profiles/show.html", {"profiles": get_profiles()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new profile, filled in with a copy of ?copy=; on POST, save it."""
    try:
        form = ProfileForm.for_new(
            request.POST if request.method == "POST" else None, clean_text(request.GET.get("copy", ""))
        )
    except SamplingProfile.DoesNotExist:
        raise Http404("There is no such profile to copy.") from None
    profile = form.create(find_username(request))
    if profile is None:
        return render_page(request, "profiles/new.html", {"form": form}, status=422 if form.is_bound else 200)
    record(request, Action.ADDED, f"sampling profile {profile.name}", reverse("profile", args=[profile.name]))
    messages.success(request, "Saved as version 1. You can choose it in a new run.")
    return redirect("profile", profile.name)


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a profile, its versions and the difference between ?old= and ?new=; on POST, save a new version."""
    page = _find_page(request, slug)
    form = ProfileForm.for_version(request.POST if request.method == "POST" else None, page)
    number = form.edit(page.profile, find_username(request))
    if number is None:
        return render_page(
            request, "profiles/one.html", {"page": page, "form": form}, status=422 if form.is_bound else 200
        )
    record(request, Action.CHANGED, f"sampling profile {slug}, version {number}", reverse("profile", args=[slug]))
    messages.success(request, f"This is version {number}. Runs that used another version keep theirs.")
    return redirect("profile", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the profile, or archive it if a run used it."""
    page = _find_page(request, slug)
    if not page.editable:
        raise Http404("A built-in or archived profile cannot be deleted.")
    if request.method != "POST":
        context = {"name": slug, "back": reverse("profile", args=[slug])}
        return render_page(request, "library/delete.html", context)
    archived = delete_profile(page.profile)
    record(request, Action.DELETED, f"sampling profile {slug}", reverse("profiles"))
    done = "is archived: runs that used it keep their settings" if archived else "is deleted; no run had used it"
    messages.success(request, f"{slug} {done}.")
    return redirect("profiles")


def _find_page(request: HttpRequest, slug: str) -> ProfilePage:
    numbers = (parse_whole_number(request.GET.get(side, "")) for side in ("old", "new"))
    try:
        return get_profile_page(slug, *numbers)
    except SamplingProfile.DoesNotExist:
        raise Http404(f"There is no sampling profile {slug}; it may have been deleted.") from None
