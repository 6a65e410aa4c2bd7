"""Views of providers: list, connect, edit and delete them, and add their models."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from toolbench.lab.endpoints import connect, offered_models
from toolbench.lab.endpoints.setup_pages import get_provider, get_providers
from toolbench.lab.models import Provider
from toolbench.web.forms.errors import add_form_errors
from toolbench.web.forms.providers import ProviderForm
from toolbench.web.rate_charts import build_rate_charts
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record
from toolbench.web.roles import Role, require_roles

MAX_SHOWN_NAMES, MAX_SHOWN_CHARACTERS = 5, 80  # names in a message; characters of each
NOTHING_ADDED = (
    "No model was added: choose or enter one that is not added yet, with at most "
    f"{offered_models.MAX_MODEL_NAME_CHARACTERS} characters."
)


@require_safe
def list_providers(request: HttpRequest) -> HttpResponse:
    """Show the list of providers (GET /providers/)."""
    return render_page(request, "providers/list.html", {"rows": get_providers()})


@require_roles(read=Role.OWNER, change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form, filled in from the URL; on POST, connect the provider and request its list of models."""
    if request.method != "POST":
        initial = ProviderForm(initial=request.GET.dict())
        return render_page(request, "providers/edit.html", {"form": initial, "row": None})
    form = ProviderForm(request.POST)
    if form.is_valid():
        try:
            provider = _connect_provider(request, form.build_connection())
            offered_models.request_models(provider.pk)
            return redirect("provider-models", provider.pk)
        except connect.ConnectionSettingsError as error:
            add_form_errors(form, error)
    return render_page(request, "providers/edit.html", {"form": form, "row": None}, status=422)


@require_roles(change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Show a provider with its form; on POST, save it and, with the button `list`, request its models."""
    provider = get_object_or_404(Provider, pk=provider_id)
    is_submitted = request.method == "POST"
    form = ProviderForm(request.POST, provider=provider) if is_submitted else ProviderForm.from_provider(provider)
    if not (is_submitted and form.is_valid() and _save_provider(request, provider, form)):
        return _render_provider(request, provider_id, form)
    if "list" not in request.POST:
        return redirect("provider", provider_id)
    offered_models.request_models(provider_id)
    return redirect("provider-models", provider_id)


@require_roles(read=Role.OWNER, change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Ask for confirmation; on POST, delete the provider. Its runs are kept."""
    provider = get_object_or_404(Provider, pk=provider_id)
    if request.method != "POST":
        context = {"row": get_provider(provider_id), "stored_model_count": provider.models.count()}
        return render_page(request, "providers/delete.html", context)
    try:
        connect.delete_provider(provider_id)
    except connect.BuiltinProviderError as error:
        messages.error(request, str(error))
        return redirect("provider", provider_id)
    record(request, Action.DELETED, f"provider {provider.name}")
    messages.success(request, f"{provider.name} is deleted. Its runs and trials are kept.")
    return redirect("providers")


@require_roles(read=Role.OPERATOR)
@require_http_methods(["GET", "HEAD", "POST"])
def choose_models(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Show the models that a provider offers; on POST, request a new list or add models.

    If no model is added, or an entered name is not, the page keeps the entered names.
    """
    provider = get_object_or_404(Provider, pk=provider_id)
    if "ask" in request.POST:
        offered_models.request_models(provider_id)
        return redirect("provider-models", provider_id)
    is_submitted = request.method == "POST"
    if is_submitted and _add_models(request, provider):
        return redirect("provider", provider_id)
    offer = offered_models.get_offered_models(provider_id, request.GET.get("q", ""))
    context = {"offer": offer, "entered_names": request.POST.get("more", "")}
    return render_page(request, "providers/models.html", context, status=422 if is_submitted else 200)


def _add_models(request: HttpRequest, provider: Provider) -> bool:
    """Add the models that the form names, and show a message; return False if none or not all are added."""
    names = [*request.POST.getlist("name"), *request.POST.get("more", "").splitlines()]
    added = offered_models.add_models(provider.pk, names)
    missing = offered_models.list_missing_names(provider.pk, names)
    if added:
        models = f"{added} model{'' if added == 1 else 's'}"
        record(request, Action.ADDED, f"{models} of {provider.name}", reverse("provider", args=[provider.pk]))
        messages.success(request, f"{models} added. Start a run to try them.")
    if missing or not added:
        messages.error(request, _describe_missing_names(missing) if added else NOTHING_ADDED)
    return bool(added) and not missing


def _describe_missing_names(names: Sequence[str]) -> str:
    """Return the message about names that were not added although others were; it quotes the first names."""
    shown = ", ".join(name[:MAX_SHOWN_CHARACTERS] for name in names[:MAX_SHOWN_NAMES])
    return f"{len(names)} not added, since the provider cannot have a model of this name: {shown}"


def _connect_provider(request: HttpRequest, settings: connect.ConnectionSettings) -> Provider:
    """Connect a provider and add this to the audit list."""
    before = connect.find_connected(settings)
    provider = connect.connect_provider(settings)
    _record_provider(request, settings, before, provider)
    return provider


def _save_provider(request: HttpRequest, provider: Provider, form: ProviderForm) -> bool:
    """Save the settings of a valid form, and show a message. The settings apply from the next trial on.

    Returns:
        False if the settings are refused; the form then has the errors.
    """
    try:
        settings = form.build_connection()
        _record_provider(request, settings, provider, connect.edit_provider(provider.pk, settings))
    except connect.ConnectionSettingsError as error:
        add_form_errors(form, error)
        return False
    messages.success(request, "Saved. The change applies from the next trial on; runs keep frozen settings.")
    return True


def _render_provider(request: HttpRequest, provider_id: int, form: ProviderForm) -> HttpResponse:
    row = get_provider(provider_id)
    context = {"form": form, "row": row, "rate_charts": build_rate_charts(row.rate_control)}
    return render_page(request, "providers/edit.html", context, status=422 if form.errors else 200)


def _record_provider(
    request: HttpRequest, settings: connect.ConnectionSettings, before: Provider | None, provider: Provider
) -> None:
    """Add to the audit list that a provider was saved, and which changes of its secrets were made."""
    for action in connect.list_save_actions(settings, before, provider):
        record(request, action, f"provider {provider.name}", reverse("provider", args=[provider.pk]))
