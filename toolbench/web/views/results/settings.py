"""Views of the settings of a configuration for other programs, on a page and as files."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.decide.settings_export import SettingsPage, get_settings_page
from toolbench.web.downloads import build_file_response
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest, config_id: int) -> HttpResponse:
    """Show the settings of a configuration (GET /decide/settings/ID/)."""
    return render_page(request, "settings/show.html", {"page": _get_page_or_404(config_id)})


@require_safe
def download(request: HttpRequest, config_id: int, file: str) -> HttpResponse:
    """Return one file of the settings (GET /decide/settings/ID/FILE)."""
    files = {settings_file.file: settings_file for settings_file in _get_page_or_404(config_id).files}
    if file not in files:
        raise Http404(f"There is no {file} of configuration {config_id}.")
    return build_file_response(files[file].text, "text/plain; charset=utf-8", name=f"toolbench-{config_id}-{file}")


def _get_page_or_404(config_id: int) -> SettingsPage:
    page = get_settings_page(config_id)
    if page is None:
        raise Http404(f"There is no configuration {config_id}; its run may have been deleted.")
    return page
