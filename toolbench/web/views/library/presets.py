"""Views of presets (list, create, edit, delete), of the effective settings, and of simulated models."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods, require_safe

from toolbench.lab.endpoints.setup_pages import get_presets
from toolbench.lab.endpoints.simulated import get_simulated_models
from toolbench.lab.library.presets import PresetPage, get_preset_page
from toolbench.lab.planning.policy_page import PolicyQuery, get_policy_page
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.forms.presets import PresetForm
from toolbench.web.library_entries import EntryKind, create_entry, delete_entry, edit_entry
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the presets (GET /presets/)."""
    return render_page(request, "presets/show.html", {"presets": get_presets()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new preset, filled in from the preset named by ?copy=; on POST, save it."""
    return create_entry(request, _KIND)


@require_http_methods(["GET", "HEAD", "POST"])
def show_preset(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a preset, its versions, and its effect on ?model=; on POST, save a new version.

    ?old= and ?new= choose the versions whose difference is shown.
    """
    return edit_entry(request, _KIND, slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; on POST, delete the preset, or archive it if a run used it."""
    return delete_entry(request, _KIND, slug)


@require_safe
def show_policy(request: HttpRequest) -> HttpResponse:
    """Show the effective settings of ?model=, ?profile=, ?strategy=, ?method= and ?scenario=.

    With ?config=, show the settings that a run froze for the configuration.
    """
    query = PolicyQuery.from_query(request.GET.dict())
    return render_page(request, "presets/policy.html", {"page": get_policy_page(query)})


@require_safe
def show_simulated_models(request: HttpRequest) -> HttpResponse:
    """Show the simulated models (GET /demo/personas/)."""
    return render_page(request, "personas/show.html", {"personas": get_simulated_models()})


def _get_page(request: HttpRequest, name: str) -> PresetPage:
    old, new, model = (parse_whole_number(request.GET.get(key, "")) for key in ("old", "new", "model"))
    return get_preset_page(name, old=old, new=new, model=model)


_KIND = EntryKind(
    plural="Presets",
    url_name="preset",
    place_in_new_run=", under the strategies",
    form=PresetForm,
    get_page=_get_page,
)
