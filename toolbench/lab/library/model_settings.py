"""Settings of a model in the library: workarounds, declared capabilities, and a price."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.utils import timezone

from toolbench.engine.capabilities.record import DOCS, CapabilitiesError, parse_capabilities
from toolbench.engine.policy.presets import list_preset_names
from toolbench.engine.types import JsonObject
from toolbench.evals.prices import MAX_PRICE as MAX_PRICE
from toolbench.evals.prices import Price, read_price
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.versions import (
    EntryVersion,
    VersionDifference,
    compare_versions,
    list_versions,
    save_version,
)
from toolbench.lab.models import Model, Preset
from toolbench.lab.paid_requests import find_model_price

PRICE_MEMBERS = ("input", "output", "date", "source")
MAX_SOURCE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ModelSettingsPage:
    """Data of the page of a model's settings.

    Attributes:
        versions: newest first; the next run uses the first.
        difference: difference between the chosen versions; None if there is only one version.
        price: the price of the model; None if it is unknown.
        is_price_entered: whether a user or an imported bundle stated `price`, so that it is stored with the model. A
            price that nobody stated is a list price, or 0 for a model that costs nothing.
    """

    model: Model
    versions: tuple[EntryVersion, ...]
    difference: VersionDifference | None
    price: Price | None
    is_price_entered: bool


def get_model_settings(model_id: int, old: int | None = None, new: int | None = None) -> ModelSettingsPage:
    """Return the settings of a model with two queries.

    Args:
        model_id: primary key of the model.
        old: number of the version to compare with; None for the one before the newest.
        new: number of the version that is compared with `old`; None for the newest.

    Raises:
        Model.DoesNotExist: there is no such model.
    """
    model = Model.objects.select_related("provider").get(pk=model_id)
    versions = list_versions(model)
    stored_price = read_price(model.price, model.provider.template, model.name)
    return ModelSettingsPage(
        model=model,
        versions=versions,
        difference=compare_versions(versions, old, new),
        price=find_model_price(model.provider, model.name, model.price),
        is_price_entered=stored_price is not None,
    )


def list_workaround_choices(chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the presets that can be workarounds of a model.

    Args:
        chosen: names of the present workarounds of the model; they may be archived presets.

    Returns:
        The chosen names in their order, then those of all other presets that are not archived.
    """
    active_names = Preset.objects.filter(archived_at=None).values_list("name", flat=True)
    return tuple(dict.fromkeys((*chosen, *active_names)))


def list_capability_docs() -> tuple[tuple[str, str], ...]:
    """Return the name and description of every capability that can be declared."""
    return tuple(DOCS.items())


def save_model_settings(model: Model, content: JsonObject, *, read_number: int, username: str) -> int:
    """Save a new version of a model's settings and return its number.

    Existing runs keep their frozen settings.

    Args:
        model: the model, saved.
        content: the new values of the columns in CONTENT_COLUMNS, by column name.
        read_number: number of the version that the person has read and changed.
        username: the person who changed it.

    Raises:
        InvalidFieldsError: a workaround is unknown, a capability is unknown or has a wrong value, the price is not
            valid, or another version was saved meanwhile.
    """
    presets = {*Preset.objects.values_list("name", flat=True), *list_preset_names(), *model.workarounds}
    if unknown_names := [name for name in content["workarounds"] if not isinstance(name, str) or name not in presets]:
        raise InvalidFieldsError({"workarounds": [f"There is no preset {name}." for name in unknown_names]})
    errors = {
        name: sentence
        for name, value in content["capabilities"].items()
        if (sentence := _find_capability_error(name, value))
    }
    if errors:
        raise InvalidFieldsError({name: [sentence] for name, sentence in errors.items()})
    if sentence := _find_price_error(content["price"]):
        raise InvalidFieldsError({"price": [sentence]})
    return save_version(model, content, read_number=read_number, username=username)


def _find_price_error(price: JsonObject) -> str:
    """Return why a price cannot be saved; "" if it can. An empty price is saved as no price."""
    if not price:
        return ""
    figures = [price.get(name) for name in ("input", "output")]
    if any(isinstance(figure, bool) or not isinstance(figure, int | float) for figure in figures):
        return "A price needs two numbers: dollars per million input tokens and per million output tokens."
    if not all(0 <= figure <= MAX_PRICE for figure in figures if isinstance(figure, int | float)):
        return f"Both figures of a price must be from 0 to {MAX_PRICE:,g} dollars."
    if not isinstance(price.get("source"), str) or not 0 < len(price["source"]) <= MAX_SOURCE_CHARACTERS:
        return f"A price needs its source, at most {MAX_SOURCE_CHARACTERS} characters."
    try:
        day = date.fromisoformat(str(price.get("date")))
    except ValueError:
        day = None
    if day is None or day.isoformat() != price["date"]:  # fromisoformat also reads other ISO forms, such as 20261130
        return "A price needs its date as YYYY-MM-DD."
    if unknown := sorted(price.keys() - PRICE_MEMBERS):
        return f"Remove {', '.join(unknown)[:200]}: a price has {', '.join(PRICE_MEMBERS)}."
    return "The date of the price is in the future." if day > timezone.now().date() else ""


def _find_capability_error(name: str, value: object) -> str:
    """Return why a capability cannot have this value; "" if it can."""
    try:
        parse_capabilities({name: value})
    except CapabilitiesError as error:
        return f"{str(error)[:200]}."
    return ""
