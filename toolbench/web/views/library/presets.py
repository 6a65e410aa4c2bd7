"""Views of presets, with create, edit and delete, of simulated models, and of the effective policy."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from toolbench.lab.endpoints.setup_pages import get_presets
from toolbench.lab.endpoints.simulated import get_personas
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.presets import PresetPage, delete_preset, get_preset_page
from toolbench.lab.models import Preset
from toolbench.lab.planning.policy_page import PolicyQuery, get_policy_page
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.web.forms.presets import PresetForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_username, record


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the presets (GET /presets/)."""
    return render_page(request, "presets/show.html", {"presets": get_presets()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new preset, filled in with a copy of ?copy=; on POST, save it."""
    try:
        form = PresetForm.for_new(
            request.POST if request.method == "POST" else None, clean_text(request.GET.get("copy", ""))
        )
    except Preset.DoesNotExist:
        raise Http404("There is no such preset to copy.") from None
    preset = form.create(find_username(request))
    if preset is None:
        return render_page(request, "presets/new.html", {"form": form}, status=422 if form.is_bound else 200)
    record(request, Action.ADDED, f"preset {preset.name}", reverse("preset", args=[preset.name]))
    messages.success(request, "Saved as version 1. You can choose it in a new run, under the strategies.")
    return redirect("preset", preset.name)


@require_http_methods(["GET", "HEAD", "POST"])
def show_preset(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a preset, its versions, and its effect on ?model=; on POST, save a new version."""
    page = _find_page(request, slug)
    form = PresetForm.for_version(request.POST if request.method == "POST" else None, page)
    number = form.edit(page.preset, find_username(request))
    if number is None:
        return render_page(
            request, "presets/one.html", {"page": page, "form": form}, status=422 if form.is_bound else 200
        )
    record(request, Action.CHANGED, f"preset {slug}, version {number}", reverse("preset", args=[slug]))
    messages.success(request, f"This is version {number}. Runs that used another version keep theirs.")
    return redirect("preset", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the preset, or archive it if a run used it."""
    page = _find_page(request, slug)
    if not page.editable:
        raise Http404("A built-in or archived preset cannot be deleted.")
    if request.method != "POST":
        return render_page(request, "library/delete.html", {"name": slug, "back": reverse("preset", args=[slug])})
    try:
        done = "is archived: runs that used it keep it" if delete_preset(page.preset) else "is deleted; no run used it"
    except InvalidFieldsError as error:
        messages.error(request, str(error))
        return redirect("preset", slug)
    return _report_deletion(request, slug, done)


@require_safe
def show_policy(request: HttpRequest) -> HttpResponse:
    """Show the policy of ?model=, ?profile=, ?strategy=, ?method= and ?scenario=, or the frozen one of ?config=."""
    choice = PolicyQuery.from_query(request.GET.dict())
    return render_page(request, "presets/policy.html", {"page": get_policy_page(choice)})


@require_safe
def show_personas(request: HttpRequest) -> HttpResponse:
    """Show the simulated models (GET /demo/personas/)."""
    return render_page(request, "personas/show.html", {"personas": get_personas()})


def _report_deletion(request: HttpRequest, slug: str, done: str) -> HttpResponse:
    record(request, Action.DELETED, f"preset {slug}", reverse("presets"))
    messages.success(request, f"{slug} {done}.")
    return redirect("presets")


def _find_page(request: HttpRequest, slug: str) -> PresetPage:
    old, new, model = (parse_whole_number(request.GET.get(name, "")) for name in ("old", "new", "model"))
    try:
        return get_preset_page(slug, old=old, new=new, model=model)
    except Preset.DoesNotExist:
        raise Http404(f"There is no preset {slug}; it may have been deleted.") from None
