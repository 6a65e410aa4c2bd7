"""Load the data that Toolbench comes with: presets, sampling profiles, models, simulated models, the published matrix.

It may run at any time: built-in facts are updated, settings of a person stay.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction

from toolbench.engine.policy import presets
from toolbench.evals import catalogue, published
from toolbench.lab.endpoints.simulated import build_personas
from toolbench.lab.models import (
    LibraryVersion,
    Model,
    Preset,
    Provider,
    PublishedCell,
    PublishedRecommendation,
    PublishedSnapshot,
    SamplingProfile,
)
from toolbench.providers.simulated.server import SERVER_NAME as SIMULATED
from toolbench.providers.templates import lookup_template

OPENROUTER = "OpenRouter"
TINY_MODEL = "smollm2-135m-instruct"
TINY_MODEL_OPTIONS = {"temperature": 0.7, "max_tokens": 96}  # it rambles; longer answers only take longer
SIMULATED_CONCURRENCY = 50
Row = TypeVar("Row", Model, Preset, SamplingProfile)


@dataclass(frozen=True, slots=True)
class _LocalProvider:
    name: str
    service: str
    concurrency: int
    note: str


_LOCAL_PROVIDERS = (
    _LocalProvider("Local, own template", "local-own", 1, "The model's own template, which has no place for tools."),
    _LocalProvider("Local, tool template", "local-tools", 1, "Our template, which puts the tools into the prompt."),
)


@dataclass(frozen=True, slots=True)
class LoadedCounts:
    """Rows of each kind that Toolbench comes with; a simulated model in two wire formats counts twice."""

    presets: int
    profiles: int
    models: int
    personas: int
    published_cells: int


@transaction.atomic
def load_builtin_data() -> LoadedCounts:
    """Load all built-in data in one transaction and return the numbers of rows."""
    return LoadedCounts(
        presets=_load_presets(),
        profiles=_load_profiles(),
        models=_load_case_study_models() + _load_local_models(),
        personas=_load_simulated_models(),
        published_cells=_load_published(),
    )


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
    provider, _ = Provider.objects.get_or_create(
        template=template.slug,
        defaults={
            "name": OPENROUTER,
            "base_url": template.base_url,
            "api_prefix": template.api_prefix,
            "key_source": Provider.KeySource.ENVIRONMENT,
            "key_env": template.key_env,
        },
    )
    rows = [
        Model(
            provider=provider,
            name=model.name,
            canonical=model.canonical,  # stays as a person may have set it
            tags=list(model.tags),
            retired=model.retired,
            mixed_upstreams=model.mixed_upstreams,
            note=model.note,
            workarounds=list(model.workarounds),  # a person may have set others since
        )
        for model in catalogue.load_models()
    ]
    _upsert_rows(rows, ("provider", "name"), ("tags", "retired", "mixed_upstreams", "note"))
    return len(rows)


def _load_local_models() -> int:
    for local in _LOCAL_PROVIDERS:
        provider, _ = Provider.objects.get_or_create(
            service=local.service,
            defaults={
                "name": local.name,
                "kind": Provider.Kind.LOCAL,
                "concurrency": local.concurrency,
                "option_defaults": TINY_MODEL_OPTIONS,
            },
        )
        facts = {"canonical": TINY_MODEL, "constraint": "grammar", "note": local.note}
        Model.objects.get_or_create(provider=provider, name=TINY_MODEL, defaults=facts)
    return len(_LOCAL_PROVIDERS)


def _load_simulated_models() -> int:
    """Load the simulated models of each wire format that can express their faults.

    The providers have different names, so that a name stands for one model.
    """
    named = {
        Provider.Wire.CHAT: "Simulated",
        Provider.Wire.ANTHROPIC: "Simulated (Anthropic wire)",
        Provider.Wire.RESPONSES: "Simulated (Responses wire)",
    }
    return sum(_load_simulated_models_of(wire, name) for wire, name in named.items())


def _load_simulated_models_of(wire: Provider.Wire, name: str) -> int:
    """Load the models of the built-in provider, and update those that a person chose at other simulated providers."""
    Provider.objects.get_or_create(
        service=SIMULATED,
        wire=wire,
        template="",
        defaults={"name": name, "kind": Provider.Kind.SIMULATED, "concurrency": SIMULATED_CONCURRENCY},
    )
    loaded = 0
    for provider in Provider.objects.filter(service=SIMULATED, wire=wire):
        found = build_personas(provider)
        chosen = found if not provider.template else set(provider.models.values_list("name", flat=True))
        rows = [row for name, row in found.items() if name in chosen]
        if rows:
            _upsert_simulated_models(provider, rows)
        loaded += len(rows) if not provider.template else 0
    return loaded


def _upsert_simulated_models(provider: Provider, rows: Sequence[Model]) -> None:
    """Update the models of a provider; those with settings of a person keep their workarounds."""
    edited = set(LibraryVersion.objects.filter(model__provider=provider).values_list("model__name", flat=True))
    for group, facts in (
        ([row for row in rows if row.name not in edited], ("true_rates", "note", "workarounds")),
        ([row for row in rows if row.name in edited], ("true_rates", "note")),
    ):
        if group:
            _upsert_rows(group, ("provider", "name"), facts)


def _upsert_rows(rows: Sequence[Row], named: Collection[str], facts: Collection[str]) -> None:
    """Insert new rows; update only the columns `facts` of rows with the same columns `named`."""
    type(rows[0])._default_manager.bulk_create(rows, update_conflicts=True, unique_fields=named, update_fields=facts)


def _load_published() -> int:
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
    """Replace the rows of a snapshot. No other rows refer to them."""
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
            model=words.model,
            profile=words.profile,
            parameters=words.parameters,
            preset=words.preset,
            recommended=words.recommended,
            notes=words.notes,
        )
        for position, words in enumerate(snapshot.recommendations)
    )
