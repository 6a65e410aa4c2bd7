"""Forms of schedules and alert rules, which read input into settings. The lab checks their values."""

from typing import Any

from django import forms
from django.http import QueryDict

from toolbench.lab.models import AlertRule, Run, Schedule
from toolbench.lab.planning.launch_form import get_launch_choices
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.lab.schedules.edit import MAX_EVERY_HOURS, ScheduleSettings
from toolbench.lab.schedules.rules import MAX_URL_CHARACTERS, RuleSettings
from toolbench.web.forms.launch import PLAN_FIELDS, LaunchForm


class PlanIncompleteError(Exception):
    """Raised if the form for a new run does not accept a plan."""


def read_plan_source(parameters: QueryDict) -> Run | RunRequest:
    """Return the run of the parameter `run`, or the plan of the parameters of the launch form.

    Raises:
        Run.DoesNotExist: the run does not exist or was deleted, or the parameters have neither a run nor a plan.
        PlanIncompleteError: the form for a new run does not accept the plan.
    """
    if "run" in parameters or not PLAN_FIELDS & parameters.keys():
        return Run.objects.get(pk=parse_whole_number(parameters.get("run", "")) or 0, deleted_at=None)
    plan = LaunchForm(get_launch_choices(), LaunchForm.add_defaults(parameters)).to_request()
    if plan is None:
        raise PlanIncompleteError
    return plan


class ScheduleForm(forms.Form):
    """Form of a schedule."""

    name = forms.CharField(max_length=120, label="Name")
    rhythm = forms.ChoiceField(choices=[("nightly", "Nightly"), ("hours", "Every n hours")], label="Repeat")
    hour_utc = forms.IntegerField(
        required=False, min_value=0, max_value=23, label="Hour, UTC", help_text="For nightly runs: 0 to 23."
    )
    every_hours = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_EVERY_HOURS, label="Hours between runs", help_text="If not nightly."
    )
    requests_per_run = forms.IntegerField(
        min_value=1, label="Requests per run", help_text="A run that reaches them pauses. Saving confirms them."
    )
    requests_per_month = forms.IntegerField(
        min_value=1, label="Requests per month", help_text="A run that could exceed them is skipped."
    )

    @classmethod
    def from_schedule(cls, schedule: Schedule) -> "ScheduleForm":
        """Return the form with the values of a schedule."""
        names = ("name", "hour_utc", "every_hours", "requests_per_run", "requests_per_month")
        initial: dict[str, Any] = {name: getattr(schedule, name) for name in names}
        return cls(initial=initial | {"rhythm": "nightly" if schedule.every_hours is None else "hours"})

    def build_settings(self) -> ScheduleSettings:
        """Return the settings; call it only if the form is valid."""
        data = self.cleaned_data
        is_nightly = data["rhythm"] == "nightly"
        return ScheduleSettings(
            name=clean_text(data["name"], 120),
            every_hours=None if is_nightly else data["every_hours"],
            hour_utc=data["hour_utc"] if is_nightly else None,
            requests_per_run=data["requests_per_run"],
            requests_per_month=data["requests_per_month"],
        )


class RuleForm(forms.Form):
    """Form of an alert rule."""

    schedule = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    kind = forms.ChoiceField(choices=AlertRule.Kind.choices)
    threshold = forms.FloatField(required=False, label="Threshold")
    webhook = forms.CharField(required=False, max_length=MAX_URL_CHARACTERS, label="Webhook")
    email = forms.EmailField(required=False, label="E-mail")

    def build_settings(self) -> RuleSettings:
        """Return the settings; call it only if the form is valid."""
        data = self.cleaned_data
        return RuleSettings(data["kind"], data["threshold"], data["webhook"], data["email"])

    @property
    def error_line(self) -> str:
        """Return all errors of the form in one line."""
        sentences = [
            f"{self.fields[name].label}: {error}" if self.fields[name].label else str(error)
            for name, errors in self.errors.items()
            for error in errors
        ]
        return " ".join(sentences)
