"""Loader of built-in data: prices, presets, profiles, models, simulated models and published matrices.

It can run at any time: it updates the columns that Toolbench defines, and keeps what users have set.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Q

from toolbench.engine.policy import presets
from toolbench.evals import catalogue, published
from toolbench.evals.prices import load_prices
from toolbench.lab.endpoints.simulated import build_simulated_models
from toolbench.lab.metrics.cells import mark_list_priced_stale
from toolbench.lab.models import (
    LibraryVersion,
    Model,
    Preset,
    PriceList,
    Provider,
    PublishedCell,
    PublishedRecommendation,
    PublishedSnapshot,
    SamplingProfile,
)
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.templates import lookup_template

OPENROUTER_NAME = "OpenRouter"
LOCAL_MODEL_NAME = "smollm2-135m-instruct"
LOCAL_MODEL_OPTIONS = {"temperature": 0.7, "max_tokens": 96}  # longer answers cost time and are not better
LOCAL_CONCURRENCY = 1
SIMULATED_CONCURRENCY = 50
Row = TypeVar("Row", Model, Preset, SamplingProfile)


@dataclass(frozen=True, slots=True)
class _LocalProvider:
    """Built-in provider of the local model.

    Attributes:
        service: name of the local server that it uses.
        note: description of the model at this provider.
    """

    name: str
    service: str
    note: str


_LOAD_LOCK_ID = 7_204_321  # key of the advisory lock under which built-in data is loaded
_LOCAL_PROVIDERS = (
    _LocalProvider(
        "Local, own template", "local-own", "The model's own template, which leaves tools out of the prompt."
    ),
    _LocalProvider(
        "Local, tool template", "local-tools", "Toolbench's template, which puts the tools into the prompt."
    ),
)


@dataclass(frozen=True, slots=True)
class LoadedCounts:
    """Numbers of built-in rows by kind.

    Attributes:
        models: models of the case study and at the local providers.
        simulated_models: each one counts once for each of its wire formats.
        published_rows: rows of the published matrices.
    """

    presets: int
    profiles: int
    models: int
    simulated_models: int
    published_rows: int


@transaction.atomic
def load_builtin_data() -> LoadedCounts:
    """Load all built-in data in one transaction and return how many built-in rows there are.

    A second process that calls this function at the same time waits.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOAD_LOCK_ID])
    counts = LoadedCounts(
        presets=_load_presets(),
        profiles=_load_profiles(),
        models=_load_case_study_models() + _load_local_models(),
        simulated_models=_load_simulated_models(),
        published_rows=_load_published(),
    )
    _load_price_lists()  # last, since it locks cells that workers update
    return counts


def _load_presets() -> int:
    names = presets.list_preset_names()
    rows = [
        Preset(
            name=name, patch=presets.get_preset(name), description=presets.get_preset_description(name), builtin=True
        )
        for name in names
    ]
    _upsert_rows(rows, ("name",), ("patch", "description", "builtin"))
    return len(names)


def _load_profiles() -> int:
    rows = [
        SamplingProfile(
            name=profile.name,
            applies_to=profile.applies_to,
            options=profile.options,
            tags=list(profile.tags),
            builtin=True,
            order=order,
        )
        for order, profile in enumerate(catalogue.load_profiles(), start=1)
    ]
    _upsert_rows(rows, ("name",), ("applies_to", "options", "tags", "builtin", "order"))
    return len(rows)


def _load_case_study_models() -> int:
    template = lookup_template("openrouter")
    provider = _find_or_create_provider(
        {"template": template.slug},
        name=OPENROUTER_NAME,
        base_url=template.base_url,
        api_prefix=template.api_prefix,
        key_source=Provider.KeySource.ENVIRONMENT,
        key_env=template.key_env,
    )
    rows = [
        Model(
            provider=provider,
            name=model.name,
            canonical=model.canonical,  # only for new rows: a user may have changed it
            tags=list(model.tags),
            retired=model.retired,
            mixed_upstreams=model.mixed_upstreams,
            note=model.note,
            workarounds=list(model.workarounds),  # only for new rows, as canonical
        )
        for model in catalogue.load_models()
    ]
    _upsert_rows(rows, ("provider", "name"), ("tags", "retired", "mixed_upstreams", "note"))
    return len(rows)


def _load_local_models() -> int:
    """Create the local providers and their models if they do not exist, and return their number."""
    for local in _LOCAL_PROVIDERS:
        provider = _find_or_create_provider(
            {"service": local.service},
            name=local.name,
            kind=Provider.Kind.LOCAL,
            concurrency=LOCAL_CONCURRENCY,
            option_defaults=LOCAL_MODEL_OPTIONS,
        )
        columns = {"canonical": LOCAL_MODEL_NAME, "constraint": "grammar", "note": local.note}
        Model.objects.get_or_create(provider=provider, name=LOCAL_MODEL_NAME, defaults=columns)
    return len(_LOCAL_PROVIDERS)


def _load_simulated_models() -> int:
    """Load, for each wire format, the simulated models whose faults it can express; return their number.

    Each wire format has its own provider name, so that provider and model name identify one model.
    """
    names_by_wire = {
        Provider.Wire.CHAT: "Simulated",
        Provider.Wire.ANTHROPIC: "Simulated (Anthropic wire)",
        Provider.Wire.RESPONSES: "Simulated (Responses wire)",
    }
    return sum(_load_simulated_models_of_wire(wire, name) for wire, name in names_by_wire.items())


def _load_simulated_models_of_wire(wire: Provider.Wire, provider_name: str) -> int:
    """Load the built-in simulated provider of a wire format with all its models.

    At providers of the simulated server that users created, only the models that users chose are updated.

    Returns:
        The number of models of the built-in provider.
    """
    _find_or_create_provider(
        {"service": SERVER_NAME, "wire": wire, "template": ""},
        name=provider_name,
        kind=Provider.Kind.SIMULATED,
        concurrency=SIMULATED_CONCURRENCY,
    )
    builtin_count = 0  # only providers that users created have a template
    for provider in Provider.objects.filter(service=SERVER_NAME, wire=wire):
        models_by_name = build_simulated_models(provider)
        names = models_by_name if not provider.template else set(provider.models.values_list("name", flat=True))
        rows = [row for name, row in models_by_name.items() if name in names]
        if rows:
            _upsert_simulated_models(provider, rows)
        builtin_count += len(rows) if not provider.template else 0
    return builtin_count


def _upsert_simulated_models(provider: Provider, rows: Sequence[Model]) -> None:
    """Insert or update models of a provider; models whose settings a user has edited keep their workarounds."""
    edited_names = set(LibraryVersion.objects.filter(model__provider=provider).values_list("model__name", flat=True))
    for group, updated_columns in (
        ([row for row in rows if row.name not in edited_names], ("true_rates", "note", "workarounds")),
        ([row for row in rows if row.name in edited_names], ("true_rates", "note")),
    ):
        if group:
            _upsert_rows(group, ("provider", "name"), updated_columns)


def _find_or_create_provider(key_values: Mapping[str, str], *, name: str, **columns: Any) -> Provider:
    """Return the oldest provider with these values; create it, with further columns, if there is none.

    Users may have created several with the same values. If another provider has the name already, a number is
    appended to the name of the new one, from 2.
    """
    provider = Provider.objects.filter(**key_values).order_by("pk").first()
    if provider is not None:
        return provider
    taken_names = set(Provider.objects.values_list("name", flat=True))
    numbered_names = (f"{name} {number}" for number in count(2))
    free_name = next(candidate for candidate in chain([name], numbered_names) if candidate not in taken_names)
    return Provider.objects.create(name=free_name, **key_values, **columns)


def _upsert_rows(rows: Sequence[Row], key_columns: Collection[str], updated_columns: Collection[str]) -> None:
    """Insert rows with a new key; of the other rows, update only `updated_columns`. There must be at least one row."""
    type(rows[0])._default_manager.bulk_create(
        rows, update_conflicts=True, unique_fields=key_columns, update_fields=updated_columns
    )


def _load_price_lists() -> None:
    """Store the list prices; mark cells for recomputing if a price of their provider's template has changed."""
    prices: dict[str, dict[str, list[float]]] = {}
    for price in reversed(load_prices()):  # the first price of a model counts
        prices.setdefault(price.provider, {})[price.model] = [price.input, price.output]
    stored = dict(PriceList.objects.values_list("template", "prices"))
    changed = [template for template in {*prices, *stored} if prices.get(template) != stored.get(template)]
    if changed:
        mark_list_priced_stale(Q(config__provider__template__in=changed))
        PriceList.objects.filter(template__in=changed).delete()
        PriceList.objects.bulk_create(
            PriceList(template=template, prices=prices[template]) for template in changed if template in prices
        )


def _load_published() -> int:
    """Load the published matrices and return the number of their rows."""
    for snapshot in published.load_snapshots():
        row, _ = PublishedSnapshot.objects.update_or_create(
            slug=snapshot.slug,
            defaults={
                "title": snapshot.title,
                "source": snapshot.source,
                "published": snapshot.published,
                "trials": snapshot.trials,
                "totals": {"overall": snapshot.overall, "tool": snapshot.tool, "control": snapshot.control},
                "scenarios": snapshot.scenarios,
                "note": snapshot.note,
            },
        )
        _load_published_rows(row, snapshot)
    return sum(len(snapshot.cells) for snapshot in published.load_snapshots())


def _load_published_rows(row: PublishedSnapshot, snapshot: published.CaseStudySnapshot) -> None:
    """Replace the rows and recommendations of a snapshot; no row of another table refers to them."""
    row.cells.all().delete()
    row.recommendations.all().delete()
    PublishedCell.objects.bulk_create(
        PublishedCell(
            snapshot=row,
            position=position,
            model=cell.model,
            profile=cell.profile,
            tool_ok=cell.tool[0],
            tool_runs=cell.tool[1],
            control_ok=cell.control[0],
            control_runs=cell.control[1],
            p95_ms=cell.p95_ms,
            failures=[{"name": failure.name, "count": failure.count} for failure in cell.failures],
            not_applicable=cell.not_applicable,
        )
        for position, cell in enumerate(snapshot.cells)
    )
    PublishedRecommendation.objects.bulk_create(
        PublishedRecommendation(
            snapshot=row,
            position=position,
            model=recommendation.model,
            profile=recommendation.profile,
            parameters=recommendation.parameters,
            preset=recommendation.preset,
            recommended=recommendation.recommended,
            notes=recommendation.notes,
        )
        for position, recommendation in enumerate(snapshot.recommendations)
    )
