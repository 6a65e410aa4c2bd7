"""Forms of aliases of the gateway: one for an alias, one for the promotion of a configuration."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.http import QueryDict

from toolbench.lab.cases.pages import get_model_choices
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import DecisionRecord, ModelAlias, SamplingProfile, Schedule
from toolbench.lab.planning.lookup import METHODS
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.decide.promotion import PromotionSource
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import save_record
from toolbench.lab.schedules.canaries import create_canary
from toolbench.lab.schedules.edit import MAX_EVERY_HOURS, ScheduleSettings
from toolbench.lab.schedules.page import get_new_schedule
from toolbench.lab.serving.aliases import AliasChoice, promote_config, save_alias
from toolbench.lab.serving.bindings import BindingChange, Cause
from toolbench.web.forms.errors import add_form_errors

_PROMOTION_FIELDS = {"name": "alias"}  # fields of errors of the lab → fields of the form
_SCHEDULE_FIELDS = ("every_hours", "requests_per_run", "requests_per_month")


class AliasForm(forms.Form):
    """Form of an alias.

    If the field `config` has the id of a measured configuration, its model and settings become those of the alias.
    The field `binding` has the id of the binding that the form shows, so that a change made meanwhile is noticed.
    """

    name = forms.CharField(label="Name", max_length=100, help_text="Programs send this name as the model.")
    model = forms.ChoiceField(label="Model")
    profile = forms.ChoiceField(label="Sampling profile")
    strategy = forms.CharField(
        label="Strategy", max_length=200, initial="production", help_text="As in New run: raw, production, or presets."
    )
    method = forms.ChoiceField(label="Method", choices=[(name, name) for name in METHODS], initial="auto")
    config = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput())
    binding = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput())
    repairs = forms.BooleanField(label="Ask once more for a call that is not valid", required=False, initial=True)
    fallbacks = forms.CharField(
        label="Fallbacks",
        max_length=600,
        required=False,
        help_text="Other aliases, in order, separated by commas. They are tried when the provider fails.",
    )
    keep_percent = forms.IntegerField(label="Requests to keep, in percent", min_value=0, max_value=100, initial=100)
    keep_bodies = forms.BooleanField(label="Keep the bodies, not only figures", required=False, initial=True)

    def __init__(self, data: QueryDict | None = None, *, alias: ModelAlias | None = None) -> None:
        """Build the form.

        Args:
            data: values of the sent form; None if none was sent.
            alias: the alias to change, which fills in the form; None for a new one.
        """
        self.alias = alias
        super().__init__(data, initial=_read_alias(alias) if alias else None)
        self._offer_choices()
        if self.config_id:
            for name in ("model", "profile", "strategy", "method"):
                self.fields[name].required = False

    @property
    def config_id(self) -> int | None:
        """Return the primary key of the form's measured configuration; None without one."""
        return parse_whole_number(str(self["config"].value() or ""))

    def _offer_choices(self) -> None:
        """Offer the current models and profiles, and those of the alias, which may be retired or deleted."""
        models = [(provider, [(str(pk), name) for pk, name in rows]) for provider, rows in get_model_choices()]
        names = ["default", *SamplingProfile.objects.order_by("name").values_list("name", flat=True)]
        if self.alias is not None:
            names.append(self.alias.profile)
            choice = (str(self.alias.model_id), self.alias.model.name)
            if all(choice[0] != pk for _, rows in models for pk, _ in rows):
                models.append((f"{self.alias.model.provider}: retired", [choice]))
        self._set_choices("model", models)
        self._set_choices("profile", [(name, name) for name in dict.fromkeys(names)])

    def _set_choices(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def save(self, *, owner: User | None) -> ModelAlias | None:
        """Save a new alias, or the changes of the form's alias.

        Returns:
            The saved alias; None if the form is empty or has errors.
        """
        if not self.is_valid():
            return None
        data = self.cleaned_data
        choice = AliasChoice(
            name=data["name"].strip(),
            model=int(data["model"] or 0),
            profile=data["profile"],
            strategy=data["strategy"],
            method=data["method"],
            config=data["config"],
            repairs=data["repairs"],
            fallbacks=tuple(name.strip() for name in data["fallbacks"].split(",") if name.strip()),
            keep_percent=data["keep_percent"],
            keep_bodies=data["keep_bodies"],
            binding=data["binding"],
        )
        try:
            return save_alias(choice, owner=owner, alias=self.alias)
        except InvalidFieldsError as error:
            add_form_errors(self, error)
            if self.alias is not None and "binding" in error.errors:
                self._show_settings(self.alias)
            return None

    def _show_settings(self, alias: ModelAlias) -> None:
        """Replace the sent settings in the form by those of the alias, which another request has changed."""
        alias.refresh_from_db()
        self._offer_choices()
        settings = {name: "" if value is None else str(value) for name, value in _read_settings(alias).items()}
        self.data = {name: self.data.get(name) for name in self.data} | settings


def _read_alias(alias: ModelAlias) -> dict[str, Any]:
    names = ("name", "repairs", "keep_percent", "keep_bodies")
    initial = {name: getattr(alias, name) for name in names} | {"fallbacks": ", ".join(alias.fallbacks)}
    return initial | _read_settings(alias)


def _read_settings(alias: ModelAlias) -> dict[str, Any]:
    settings = {name: getattr(alias, name) for name in ("profile", "strategy", "method")}
    binding_id = alias.bindings.values_list("pk", flat=True).first()
    return settings | {"model": alias.model_id, "config": alias.config_id, "binding": binding_id}


class PromotionForm(forms.Form):
    """Form of a promotion.

    The field `candidate` has the id of the configuration to promote, or `record` that of the decision record whose
    leader is to be promoted. Without a record, the decision with the URL query `query` is saved as a record.
    """

    candidate = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput())
    record = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput())
    query = forms.CharField(required=False, max_length=4000, widget=forms.HiddenInput())
    alias = forms.CharField(
        label="Alias", max_length=100, help_text="An existing alias gets these settings; a new name becomes an alias."
    )
    with_canary = forms.BooleanField(label="Repeat the measurement as a canary", required=False, initial=True)
    every_hours = forms.IntegerField(label="Hours between canary runs", min_value=1, max_value=MAX_EVERY_HOURS)
    requests_per_run = forms.IntegerField(
        label="Requests per run", min_value=1, help_text="A run that reaches them pauses. Saving confirms them."
    )
    requests_per_month = forms.IntegerField(
        label="Requests per month", min_value=1, help_text="A run that could exceed them is skipped."
    )
    returns_on_alarm = forms.BooleanField(
        label="Return to the last good binding when the canary raises an alarm", required=False, initial=True
    )

    def __init__(self, source: PromotionSource, data: QueryDict | None, *, query: str = "") -> None:
        """Build the form, filled in from `source` and the URL query of the decision unless `data` was sent."""
        self.source = source
        super().__init__(data, initial=_build_initial(source, query))
        if self.is_bound and not self["with_canary"].value():
            for name in _SCHEDULE_FIELDS:
                self.fields[name].required = False

    def clean_with_canary(self) -> bool:
        """Return whether the promotion has a canary.

        Raises:
            ValidationError: the configuration cannot have a canary.
        """
        if self.cleaned_data["with_canary"] and self.source.canary_plan is None:
            raise forms.ValidationError(f"A canary is not possible. {self.source.refusal}")
        return bool(self.cleaned_data["with_canary"])

    def save(self, owner: User | None) -> ModelAlias | None:
        """Promote the configuration.

        Returns:
            The alias; None if the form has errors, and then nothing is saved.
        """
        if not self.is_valid():
            return None
        try:
            with transaction.atomic():
                return self._promote(owner)
        except InvalidFieldsError as error:
            fields = {_PROMOTION_FIELDS.get(name, name): sentences for name, sentences in error.errors.items()}
            add_form_errors(self, InvalidFieldsError(fields))
        return None

    def _promote(self, owner: User | None) -> ModelAlias:
        data = self.cleaned_data
        canary = self._create_canary(owner)
        change = BindingChange(
            who=owner.username if owner else "",
            cause=Cause.PROMOTED,
            decision=self._get_or_save_record(owner).pk,
            canary=canary.pk if canary else None,
            returns_on_alarm=canary is not None and data["returns_on_alarm"],
        )
        return promote_config(data["alias"].strip(), self.source.config.pk, change, owner=owner)

    def _get_or_save_record(self, owner: User | None) -> DecisionRecord:
        query = DecideQuery.from_query(QueryDict(self.cleaned_data["query"]))
        return self.source.record or save_record(query, owner=owner)

    def _create_canary(self, owner: User | None) -> Schedule | None:
        data, plan = self.cleaned_data, self.source.canary_plan
        if not data["with_canary"] or plan is None:
            return None
        settings = ScheduleSettings(
            name=f"Canary of {data['alias']}"[:120],
            every_hours=data["every_hours"],
            hour_utc=None,
            requests_per_run=data["requests_per_run"],
            requests_per_month=data["requests_per_month"],
        )
        return create_canary(plan, self.source.baseline, settings, owner=owner)


def _build_initial(source: PromotionSource, query: str) -> dict[str, Any]:
    initial: dict[str, Any] = {
        "candidate": source.config.pk,
        "record": source.record.pk if source.record else None,
        "query": query,
        "alias": source.config.model_name.rpartition("/")[2],
        "every_hours": 24,
        "with_canary": source.canary_plan is not None,
    }
    if source.canary_plan is None:
        return initial
    return initial | {
        name: value for name, value in get_new_schedule(source.canary_plan).defaults.items() if name in _SCHEDULE_FIELDS
    }
