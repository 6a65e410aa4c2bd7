"""Launch form, which reads input into a RunRequest. The lab checks the rules of a run."""

from collections.abc import Collection
from dataclasses import dataclass

from django import forms
from django.conf import settings
from django.http import QueryDict

from toolbench.evals.scenarios import PACKS
from toolbench.evals.statistics.quantiles import count_more_answers_for_bounds
from toolbench.lab.planning.launch_form import RATE_CHOICES, FormChoice, LaunchChoices, ProviderChoices, list_choices
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, NO_EXAMPLES, STREAMS_BY_OPTION, RunRequest
from toolbench.lab.scenarios.case_sets import expand_set_words
from toolbench.web.forms.json_object import JsonObjectField

TOOL_USE_MODE_CHOICES = [
    ("enforced", "enforced: a trial without any call fails"),
    ("relaxed", "relaxed: tools are offered, and no call is required"),
    ("disabled", "disabled: no tools are sent"),
]
TOOL_FAILURE_POLICY_CHOICES = [
    ("fatal", "fatal: a tool's last result must be ok"),
    ("tolerated", "tolerated: one ok result is enough"),
]
STREAM_CHOICES = [("none", "whole"), ("streamed", "streamed"), ("both", "both, as two configurations")]
STOPPING_CHOICES = [
    ("", "a fixed number of trials"),
    ("threshold", "until decided against the target"),
    ("width", "until the interval is narrow enough"),
    ("best", "until one configuration is the best"),
]
INSTANCE_KIND_CHOICES = [
    (
        "parity",
        "fixed: the published wording of the case study's scenarios, fixed instances of others",
    ),
    ("drawn", "drawn from a new seed for every repeat"),
]
# A URL with any of these parameters describes a plan; without them, the page shows the form with its defaults.
PLAN_FIELDS = {"models", "profiles", "scenarios", "strategies", "methods", "examples", "trials"}

ADVANCED_FIELDS = (
    "methods",
    "examples",
    "probe_unknown",
    "stream",
    "instance_kind",
    "tool_use_mode",
    "tool_failure_policy",
    "overrides",
)


@dataclass(frozen=True, slots=True)
class ScenarioSet:
    """Named set of scenarios. `is_chosen` is True if the set's scenarios, and no others, are chosen."""

    name: str
    slugs: tuple[str, ...]
    is_chosen: bool


class LaunchForm(forms.Form):
    """Launch form. Multiple choices are checkboxes, so that the form works without a script.

    Attributes:
        choices: models, profiles, scenarios, sets, strategies, methods and examples that the form offers.
    """

    title = forms.CharField(max_length=200, required=False, label="Title")
    find = forms.CharField(max_length=100, required=False, label="Show only models with")
    models = forms.MultipleChoiceField(error_messages={"required": "Choose at least one model."})
    profiles = forms.MultipleChoiceField(label="Sampling profiles", initial=["default"])
    every_profile = forms.BooleanField(required=False, label="Every profile with every model")
    scenarios = forms.MultipleChoiceField(error_messages={"required": "Choose at least one scenario."})
    strategies = forms.MultipleChoiceField(label="Strategy", initial=["production"])
    methods = forms.MultipleChoiceField(label="Method", initial=["native"])
    examples = forms.MultipleChoiceField(required=False, label="Examples", initial=[NO_EXAMPLES])
    probe_unknown = forms.BooleanField(required=False, initial=True, label="Probe models with unknown capabilities")
    stream = forms.ChoiceField(
        choices=STREAM_CHOICES,
        initial="none",
        required=False,
        label="Answers",
        help_text=(
            "Streamed answers are server-sent events. Their times of the first token and the first call are measured."
        ),
    )
    trials = forms.IntegerField(
        min_value=1,
        max_value=MAX_CELL_TRIALS,
        initial=10,
        label="Trials for each scenario",
        help_text=(
            f"p95 has an upper bound from {count_more_answers_for_bounds(0.95, 0)} answers; below that its bound is "
            "open."
        ),
    )
    points = forms.IntegerField(
        min_value=1,
        max_value=50,
        required=False,
        initial=10,
        label="Detectable difference, points",
        help_text="Difference in percentage points. The estimate shows how many trials can detect it.",
    )
    until = forms.ChoiceField(
        choices=STOPPING_CHOICES,
        required=False,
        label="Stopping rule",
        help_text=(
            "Sequential stopping: each cell starts with 10 trials; undecided cells get 5 more at a time, up to “Trials "
            "for each scenario”."
        ),
    )
    until_rate = forms.ChoiceField(
        choices=RATE_CHOICES,
        required=False,
        initial="given",
        label="Deciding rate",
        help_text="The rate that the stopping rule uses.",
    )
    until_target = forms.FloatField(
        required=False,
        initial=90,
        label="Target, %",
        help_text="A cell is decided when its interval lies on one side of the target.",
    )
    until_width = forms.FloatField(
        required=False,
        initial=20,
        label="Width, points",
        help_text="A cell is decided when its interval is at most this wide.",
    )
    until_error = forms.FloatField(
        required=False,
        initial=5,
        label="Error, at most, %",
        help_text=(
            "Probability of a wrong decision for a cell, or for a scenario if you look for the best configuration. The "
            "cells have anytime-valid intervals."
        ),
    )
    instance_kind = forms.ChoiceField(choices=INSTANCE_KIND_CHOICES, initial="parity", label="Instances")
    tool_use_mode = forms.ChoiceField(choices=TOOL_USE_MODE_CHOICES, initial="enforced", label="Tool use mode")
    tool_failure_policy = forms.ChoiceField(
        choices=TOOL_FAILURE_POLICY_CHOICES, initial="fatal", label="Tool failure policy"
    )
    request_cap = forms.IntegerField(
        min_value=1, required=False, label="Stop after requests", help_text="Every attempt counts before it is sent."
    )
    token_cap = forms.IntegerField(min_value=1, required=False, label="Stop after tokens")
    deadline_seconds = forms.FloatField(
        min_value=1,
        max_value=86_400,
        required=False,
        label="Trial deadline",
        help_text=(
            f"Time limit per trial in seconds (default {settings.DEADLINE_SECONDS:g}). Trials over it fail end-to-end "
            "success and are left out of answered success."
        ),
    )
    overrides = JsonObjectField(
        required=False,
        label="Policy overrides",
        help_text=(
            'Settings above every preset, as JSON: {"max_turns": 6}. The page Effective settings lists the names and '
            "defaults."
        ),
    )

    def __init__(self, choices: LaunchChoices, data: QueryDict | None = None) -> None:
        """Build the form.

        If `data` has a value `set` that is the name of a set, the scenarios of this set replace the chosen ones.
        """
        sets = dict(choices.sets)
        if data is not None and (set_scenarios := sets.get(str(data.get("set")))):
            data = data.copy()
            data.setlist("scenarios", [*set_scenarios])
        super().__init__(data)
        self.choices = choices
        choices_by_field = {
            "models": [model for provider in choices.providers for model in provider.models],
            "profiles": list_choices(choices.profiles),
            "scenarios": list_choices(choices.scenarios),
            "strategies": list_choices(choices.strategies),
            "methods": list_choices(choices.methods),
            "examples": list_choices(choices.examples),
        }
        for name, values in choices_by_field.items():
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)
            field.choices = [(choice.value, choice.label) for choice in values]

    def list_available(self) -> tuple[ProviderChoices, ...]:
        """Return the available providers that have models that match `find` or are chosen, with only these models."""
        return tuple(provider for provider in self._filter_providers() if not provider.unavailable_reason)

    def list_unavailable(self) -> tuple[ProviderChoices, ...]:
        """Return the unavailable providers that have models that match `find` or are chosen, with only these models."""
        return tuple(provider for provider in self._filter_providers() if provider.unavailable_reason)

    def is_unavailable_expanded(self) -> bool:
        """Return whether the list of unavailable providers is expanded.

        The list is expanded if the field `find` has a text, or a model of an unavailable provider is chosen.
        """
        chosen = self._list_chosen("models")
        unavailable = (provider for provider in self.choices.providers if provider.unavailable_reason)
        return bool(self["find"].value()) or any(
            model.value in chosen for provider in unavailable for model in provider.models
        )

    def list_chosen_models(self) -> tuple[FormChoice, ...]:
        """Return the chosen models."""
        chosen = self._list_chosen("models")
        return tuple(model for provider in self.choices.providers for model in provider.models if model.value in chosen)

    def group_sets(self) -> dict[str, tuple[ScenarioSet, ...]]:
        """Return the sets of scenarios by the title of their group."""
        chosen = set(self._list_chosen("scenarios"))
        sets = [ScenarioSet(name, slugs, set(slugs) == chosen) for name, slugs in self.choices.sets]
        return {
            "Of the case study": tuple(choice for choice in sets if choice.name not in PACKS),
            "Packs": tuple(choice for choice in sets if choice.name in PACKS),
        }

    def count_scenarios(self) -> int:
        """Return the number of chosen scenarios; a set of test cases counts as one."""
        return len(self._list_chosen("scenarios"))

    def is_advanced_expanded(self) -> bool:
        """Return whether the advanced fields are expanded.

        They are expanded if one of them has an error, or a value that is neither blank nor its default.
        """
        return any(
            name in self.errors or self[name].value() not in (self.fields[name].initial, None, "", [])
            for name in ADVANCED_FIELDS
        )

    def _filter_providers(self) -> tuple[ProviderChoices, ...]:
        """Return the providers that have models that match `find` or are chosen, with only these models."""
        search_text, chosen = str(self["find"].value() or ""), self._list_chosen("models")
        filtered = (provider.filter_models(search_text, chosen) for provider in self.choices.providers)
        return tuple(provider for provider in filtered if provider.groups)

    def _list_chosen(self, name: str) -> Collection[str]:
        return [str(value) for value in self[name].value() or ()]

    @classmethod
    def add_defaults(cls, parameters: QueryDict) -> QueryDict:
        """Return the URL parameters with default values for missing ones.

        Parameters with `instance_kind` come from the form itself. They are complete and returned unchanged.
        """
        if "instance_kind" in parameters:
            return parameters
        completed = parameters.copy()
        for name, field in cls.base_fields.items():
            if name not in completed and field.initial is not None:
                default_values = field.initial if isinstance(field.initial, list) else [str(field.initial)]
                completed.setlist(name, default_values)
        return completed

    def read_points(self) -> int | None:
        """Return the detectable difference in percentage points; None if it is blank or the form is not valid."""
        return self.cleaned_data.get("points") if self.is_valid() else None

    def to_request(self) -> RunRequest | None:
        """Return the request; None if the form is empty or not valid."""
        if not self.is_valid():
            return None
        data = self.cleaned_data
        return RunRequest(
            title=data["title"],
            models=tuple(int(pk) for pk in data["models"]),
            profiles=tuple(data["profiles"]),
            enforce_applicability=not data["every_profile"],
            strategies=tuple(data["strategies"]),
            methods=tuple(data["methods"]),
            examples=tuple("" if name == NO_EXAMPLES else name for name in data["examples"] or [NO_EXAMPLES]),
            probe_unknown=data["probe_unknown"],
            streams=STREAMS_BY_OPTION[data["stream"] or "none"],
            scenarios=expand_set_words(data["scenarios"]),
            trials=data["trials"],
            until=self._build_stopping_rule(),
            instance_kind=data["instance_kind"],
            tool_use_mode=data["tool_use_mode"],
            tool_failure_policy=data["tool_failure_policy"],
            overrides=data["overrides"],
            request_cap=data["request_cap"],
            token_cap=data["token_cap"],
            deadline_seconds=data["deadline_seconds"],
        )

    def _build_stopping_rule(self) -> dict[str, object]:
        """Return the stopping rule with its values, the error as a fraction; {} for a fixed number of trials."""
        data = self.cleaned_data
        if not data["until"]:
            return {}
        condition = {"rate": data["until_rate"], "target": data["until_target"], "width": data["until_width"]}
        error = data["until_error"]
        condition["error"] = None if error is None else error / 100
        return {"rule": data["until"], **{name: value for name, value in condition.items() if value not in (None, "")}}
