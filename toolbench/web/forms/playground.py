"""Forms of the playground: a message, the settings with which it is sent, and a run of a new test case."""

import json
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict
from django.urls import reverse

from toolbench.evals.user_cases.definition import UserCase
from toolbench.lab.cases.conversations import (
    MessageSettings,
    build_draft_to_send_again,
    build_message_request,
    parse_message,
)
from toolbench.lab.cases.drafts import CaseDraft, DraftError
from toolbench.lab.cases.example import EXAMPLE_DRAFT, EXAMPLE_NOTE
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.cases.pages import get_editable_case_page
from toolbench.lab.models import Case
from toolbench.lab.planning.launch_form import list_choices, list_profile_choices, list_strategy_choices
from toolbench.lab.planning.lookup import METHODS
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.web.forms.cases import CaseForm, CaseRunForm
from toolbench.web.forms.errors import add_form_errors

_DEFAULT_SETTINGS = MessageSettings()
MAX_TRIALS = 20  # of one message
TRIALS_TO_SEND_AGAIN = 5  # initial number of trials of a message that is sent again
_HIDDEN_FIELDS = ("title", "trial", "group", "behaviour", "control")
TRIALS_OF_A_CASE = 20  # initial number of trials of a case
_MIN_ROWS, _MAX_ROWS = 3, 18  # height of the field for the message, in lines
_LAUNCH_MODES = ("tool_use_mode", "tool_failure_policy")
CASE_NOTE = "Tools, results and message are filled in from the test case {case}, which stays as it is."


class MessageForm(CaseForm):
    """Form of a message: the fields of a case, of which only the message is required.

    With `trial`, the message follows that trial's answer. Without it, the message may be a list of messages.
    """

    trial = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the form; unlike a test case, a message needs no expectation."""
        super().__init__(*args, **kwargs)
        self.fields["expect"].required = False
        source = self.data if self.is_bound else self.initial
        lines = str(source.get("message") or "").count("\n") + 1
        self.fields["message"].widget.attrs["rows"] = min(max(lines, _MIN_ROWS), _MAX_ROWS)
        if source.get("trial"):
            self.fields["message"].help_text = "The user's next message, after the answer above."
        self.fields["expect"].help_text = "May be blank: any answer passes. Otherwise as in a test case."
        self.fields["tools"].help_text = "The tools array of a request to OpenAI, as JSON or YAML. May be blank."

    @property
    def is_expanded(self) -> bool:
        """Return whether the group of less common fields, which here includes the expectation, is expanded."""
        return super().is_expanded or bool(self["expect"].errors or self["expect"].value())

    @property
    def has_collapsed_errors(self) -> bool:
        """Return whether a field other than the message has an error."""
        return any(name != "message" for name in self.errors)

    @property
    def hidden_errors(self) -> list[str]:
        """Return the errors of fields that the page does not show."""
        return [str(sentence) for name in _HIDDEN_FIELDS for sentence in self.errors.get(name, ())]

    def parse_message(self, slug: str, run_form: "MessageRunForm") -> tuple[str, UserCase] | None:
        """Read the sent message.

        Args:
            slug: slug of the conversation; "" for a new one.
            run_form: the settings that were sent with the message.

        Returns:
            Title and case of the message, with the messages before it; None if this form or `run_form` is not valid.
        """
        is_valid = self.is_valid()
        data = {name: value for name, value in self.cleaned_data.items() if name not in ("set", "read_number")}
        trial_id = data.pop("trial", None)
        try:
            message = parse_message(CaseDraft(**data), slug, trial_id)
        except DraftError as error:
            add_form_errors(self, error)
            return None
        except CaseNotCreatedError as error:
            self.add_error("message", str(error))
            return None
        return message if is_valid and run_form.is_valid() else None


class MessageRunForm(CaseRunForm):
    """Form of the settings with which a message is sent."""

    profile = forms.ChoiceField(label="Profile")
    strategy = forms.ChoiceField(label="Strategy")
    method = forms.ChoiceField(label="Method", choices=[(name, name) for name in METHODS])
    stream = forms.BooleanField(label="Stream the answer", required=False)
    source = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, data: QueryDict | None = None, *, settings: MessageSettings = _DEFAULT_SETTINGS, source: int | None = None
    ) -> None:
        """Build the form.

        Args:
            data: values of the form; ignored if `model` is missing, since they are then those of another form.
            settings: initial values.
            source: primary key of the trial whose run has the settings that the form does not show; None for the
                defaults.
        """
        super().__init__(data, model=settings.model)
        self.initial = {**asdict(settings), "source": source}
        self.fields["trials"] = forms.IntegerField(label="Times", min_value=1, max_value=MAX_TRIALS)
        self._set_choices("profile", [choice.value for choice in list_choices(list_profile_choices())])
        self._set_choices("strategy", [choice.value for choice in list_choices(list_strategy_choices())])

    def _set_choices(self, name: str, values: list[str]) -> None:
        """Offer these values and the initial one, which may be archived or combine several presets."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(value, value) for value in dict.fromkeys([*values, self.initial[name]])]

    def build_request(self, case: Case) -> RunRequest | None:
        """Return the request for the run of a message of `case`; None if the form is empty or not valid."""
        if not self.is_valid():
            return None
        values = {**self.cleaned_data, "model": int(self.cleaned_data["model"])}
        source = values.pop("source")
        return build_message_request(case, MessageSettings(**values), source)

    def render_query(self) -> str:
        """Return the sent values as a URL query."""
        return urlencode({name: self.data[name] for name in self.fields if self.data.get(name)})


class CaseTrialsForm(forms.Form):
    """Form that runs the test case made from a trial: the number of trials of that run."""

    trials = forms.IntegerField(label="Times", min_value=1, max_value=MAX_CELL_TRIALS, initial=TRIALS_OF_A_CASE)

    @property
    def count(self) -> int:
        """Return the number of trials, or the default if the field is not valid."""
        return int(self.cleaned_data["trials"]) if self.is_valid() else TRIALS_OF_A_CASE

    @staticmethod
    def render_plan_url(run_request: RunRequest | None) -> str:
        """Return the URL of the launch form with this plan, which asks to confirm paid requests.

        Args:
            run_request: the plan; None for the empty launch form.
        """
        if run_request is None:
            return reverse("run-new")
        names = ("models", "profiles", "strategies", "methods", "scenarios", "trials", *_LAUNCH_MODES)
        stream = {"stream": "streamed" if run_request.streams == (True,) else "none"}
        fields = {name: getattr(run_request, name) for name in names} | stream
        fields |= {} if run_request.enforce_applicability else {"every_profile": "on"}
        fields |= {"overrides": json.dumps(run_request.overrides)} if run_request.overrides else {}
        fields |= {"deadline_seconds": run_request.deadline_seconds} if run_request.deadline_seconds else {}
        return f"{reverse('run-new')}?{urlencode(fields, doseq=True)}"


def fill_in_forms(query: QueryDict) -> tuple[MessageForm, MessageRunForm, str]:
    """Return the forms of a new conversation.

    Args:
        query: URL parameters: a `trial`, a `case` or `example=1` fills in the forms; without these, they are empty.

    Returns:
        The forms, and a note about the origin of their content, which may be empty.

    Raises:
        CaseNotCreatedError: there is no such trial, or a test case cannot send the trial's messages.
        UnknownCaseError: there is no such case, or it cannot be edited.
    """
    trial, slug = query.get("trial", ""), clean_text(query.get("case", ""))
    if trial:
        trial_id = parse_whole_number(trial)
        if trial_id is None:
            raise CaseNotCreatedError(f"There is no trial {trial[:20]}.")
        draft, settings, note = build_draft_to_send_again(trial_id, TRIALS_TO_SEND_AGAIN)
        return MessageForm.from_draft(draft), MessageRunForm(settings=settings, source=trial_id), note
    if slug:
        page = get_editable_case_page(slug)
        settings = MessageSettings(model=page.last_model)
        return MessageForm.from_draft(page.draft), MessageRunForm(settings=settings), CASE_NOTE.format(case=page.case)
    is_example = query.get("example") == "1"
    draft = CaseDraft(**{**asdict(EXAMPLE_DRAFT), "expect": ""}) if is_example else CaseDraft()
    return MessageForm.from_draft(draft), MessageRunForm(), EXAMPLE_NOTE if is_example else ""
