"""Search of the command palette for models, runs, trials, scenarios and terms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.template.defaultfilters import pluralize
from django.utils.text import Truncator

from toolbench.evals.scenarios import list_scenarios
from toolbench.lab.date_texts import render_moment
from toolbench.lab.models import Case, CaseSet, Model, Run, Trial
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.lab.results.glossary import find_terms
from toolbench.lab.results.trace_search import asks_for_traces, search_traces
from toolbench.lab.results.trial_list.filter import ALL_SCOPES, TrialFilter

MAX_HITS_PER_GROUP = 6
MAX_MEANING_CHARS = 80
MAX_SEARCH_CHARS = 200
MAX_TRACES = 50
MIN_SHOWN_LAG_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Hit:
    """Page that matches a search.

    Attributes:
        note: text that distinguishes pages with similar labels.
    """

    label: str
    url: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Hits of one kind.

    Attributes:
        note: sentence about what the search cannot find yet; "" for none.
    """

    title: str
    hits: tuple[Hit, ...]
    note: str = ""


def search_site(search: str) -> tuple[HitGroup, ...]:
    """Return links to models, runs, trials, scenarios and terms that match a text, with at most five queries.

    A search with the word `source:gateway` finds traces of the gateway and nothing else; other searches find no traces.
    If the whole text is a number, with or without "#" before it, the run and the trial with this primary key come
    first.

    Returns:
        Groups with at least one hit, or with a note about traces that cannot be found yet; empty for a blank text.
    """
    text = clean_text(search, MAX_SEARCH_CHARS)
    if not text:
        return ()
    if asks_for_traces(text):
        return _find_traces(text)
    models = list(_find_models(text))
    groups = {
        "By number": tuple(_find_by_number(text)),
        "Models": tuple(Hit(model.name, f"/models/{model.pk}/", model.provider.name) for model in models),
        "Runs": tuple(_find_runs(text)),
        "Trials": tuple(_find_trials(text, models)),
        "Scenarios": tuple(_find_scenarios(text)),
        "Help": tuple(_find_terms(text)),
    }
    return tuple(HitGroup(title, hits) for title, hits in groups.items() if hits)


def _find_traces(text: str) -> tuple[HitGroup, ...]:
    """Return the group of the traces that match; () if none matches and all traces can be found."""
    result = search_traces(text, MAX_TRACES)
    hits = tuple(
        Hit(
            f"Trace {trace.pk} · {trace.alias} · {trace.status} {trace.code}".rstrip(),
            f"/gateway/traces/{trace.pk}/",
            f"{trace.model_name}, {render_moment(trace.at)}",
        )
        for trace in result.traces
    )
    lag_seconds = result.text_lag
    is_behind = lag_seconds >= MIN_SHOWN_LAG_SECONDS
    note = f"Traces of the last {lag_seconds:.0f} s may not be found yet." if is_behind else ""
    return (HitGroup("Gateway traces", hits, note),) if hits or note else ()


def _find_models(text: str) -> QuerySet[Model]:
    models = Model.objects.filter(name__icontains=text).select_related("provider").order_by("name", "pk")
    return models[:MAX_HITS_PER_GROUP]


def _find_runs(text: str) -> Iterator[Hit]:
    runs = Run.objects.filter(Q(title__icontains=text) | Q(label__icontains=text), deleted_at=None).order_by("-pk")
    yield from map(_build_run_hit, runs[:MAX_HITS_PER_GROUP])


def _find_by_number(text: str) -> Iterator[Hit]:
    """Yield the run and the trial with the primary key in the text, such as `12` or `#12`."""
    number = parse_whole_number(text.removeprefix("#"))
    if not number:
        return
    if run := Run.objects.filter(pk=number, deleted_at=None).first():
        yield _build_run_hit(run)
    if trial := Trial.objects.filter(pk=number, run__deleted_at=None).first():
        yield Hit(f"Trial {number}", f"/trials/{number}/", trial.scenario)


def _build_run_hit(run: Run) -> Hit:
    note = "simulated" if run.simulated else f"{run.trial_count:,} trial{pluralize(run.trial_count)}"
    return Hit(f"Run {run.pk} · {run.title}" if run.title else f"Run {run.pk}", f"/runs/{run.pk}/", note)


def _find_trials(text: str, models: Sequence[Model]) -> Iterator[Hit]:
    names = dict.fromkeys(model.name for model in models)  # several providers may have a model of one name
    for name in list(names)[:2]:
        query = TrialFilter(model=name, outcome="fail", scope=ALL_SCOPES).query()
        yield Hit(f"Failed trials of {name}", f"/trials/?{query}", "of all providers")
    query = TrialFilter(search=text, scope=ALL_SCOPES).query()
    yield Hit(f"Trials with “{text}” in their texts", f"/trials/?{query}", "search text")


def _find_scenarios(text: str) -> Iterator[Hit]:
    slug_part = text.lower().replace(" ", "_")
    builtin_slugs = [scenario.slug for scenario in list_scenarios() if slug_part in scenario.slug]
    yield from (Hit(slug, f"/scenarios/{slug}/") for slug in builtin_slugs[:MAX_HITS_PER_GROUP])
    cases = Case.objects.filter(slug__icontains=text.replace(" ", "-"), deleted_at=None).order_by("slug")
    cases = cases.exclude(set__kind=CaseSet.Kind.DRAFT)
    yield from (Hit(case.slug, f"/cases/{case.slug}/", "test case") for case in cases[:MAX_HITS_PER_GROUP])


def _find_terms(text: str) -> Iterator[Hit]:
    for term in find_terms(text)[:MAX_HITS_PER_GROUP]:
        meaning = Truncator(term.meaning.replace("`", "")).chars(MAX_MEANING_CHARS)
        yield Hit(term.name, f"/help/#{term.anchor}", meaning)
