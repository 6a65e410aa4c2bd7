"""Forms for test cases: to edit them, import them and start trials of them."""

from dataclasses import asdict
from typing import Any, Self

from django import forms
from django.http import QueryDict

from toolbench.evals.user_cases.options import BEHAVIOUR_LABELS, SETTINGS
from toolbench.lab.cases.drafts import MAX_TITLE_CHARS, CaseDraft, parse_draft
from toolbench.lab.cases.edit import NewCaseOptions, add_case, build_run_request, edit_case
from toolbench.lab.cases.example import EXAMPLE_DRAFT, EXAMPLE_NOTE
from toolbench.lab.cases.files import CaseImportError, import_cases
from toolbench.lab.cases.from_scenario import build_draft_from_scenario
from toolbench.lab.cases.from_trial import CaseNotCreatedError, build_draft_from_trial
from toolbench.lab.cases.merge_import import CaseImportResult
from toolbench.lab.cases.pages import CasePage, get_model_choices
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Case
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.query_params import normalise_lines, parse_whole_number
from toolbench.web.forms.errors import add_form_errors
from toolbench.web.forms.library import VersionForm

_MAX_SHOWN_ERRORS = 20  # of an import
_MAX_FILLED_ROWS = 24  # lines up to which a text field grows with its content
MAX_FILE_BYTES = 20_000_000
# Fields of the collapsed group that expand it if they have a value.
_EXPANDING_FIELDS = ("results", "system", "further", "group", "behaviour", "control", "workspace", "settings")
TOOLS_PLACEHOLDER = '[{"type": "function", "function": {"name": "get_weather", "description": "…", "parameters": {…}}}]'
EXPECTED_PLACEHOLDER = '{"name": "get_weather", "arguments": {"city": "Berlin"}}'


class TextField(forms.CharField):
    """Text field whose line breaks become LF, as models get them; browsers send CR LF."""

    def to_python(self, value: Any) -> str:
        """Return the text with LF in place of CR LF and CR."""
        return normalise_lines(str(super().to_python(value)))


def _build_text_field(
    label: str, rows: int, *, required: bool = False, placeholder: str = "", hint: str = ""
) -> forms.CharField:
    attributes = {"rows": rows, "spellcheck": "false", "placeholder": placeholder}
    widget = forms.Textarea(attributes)
    return TextField(label=label, required=required, strip=False, widget=widget, help_text=hint)


class CaseForm(VersionForm):
    """Form of a test case. Texts of several lines are not stripped, so that the page shows them as typed."""

    tools = _build_text_field(
        "Tools",
        12,
        placeholder=TOOLS_PLACEHOLDER,
        hint="The tools array of a request to OpenAI, as JSON or YAML.",
    )
    message = _build_text_field(
        "Message",
        3,
        required=True,
        placeholder="How is the weather in Berlin?",
        hint="The user's message, or an array of messages that ends with it.",
    )
    expect = _build_text_field(
        "Expected",
        5,
        required=True,
        placeholder=EXPECTED_PLACEHOLDER,
        hint="A call, a list of calls, or an object with calls, no_call, state or checks.",
    )
    title = forms.CharField(
        label="Name",
        max_length=MAX_TITLE_CHARS,
        required=False,
        help_text="If blank: the names of the tool and the message.",
    )
    set = forms.CharField(
        label="Set", max_length=80, required=False, help_text="If blank: My cases. A new set is private."
    )
    system = _build_text_field("System prompt", 3)
    results = _build_text_field(
        "Tool results",
        4,
        placeholder='{"get_weather": {"fixed": {"sky": "clear"}}}',
        hint=(
            "For each tool: fixed, template (with {arguments.x} and {state:/path}), generated (from a JSON Schema) or "
            "error, and fault if it fails first. A tool without an entry returns its arguments."
        ),
    )
    start = _build_text_field(
        "State before the first call",
        3,
        placeholder='{"orders": {"17": {"status": "open"}}}',
        hint="Initial state. “set” in the results changes it, and “state” in the expectation checks it.",
    )
    turns = forms.IntegerField(
        label="Maximum of turns",
        min_value=1,
        max_value=50,
        required=False,
        help_text="If blank: 1 if one call is expected, otherwise the limit of the policy.",
    )
    parallel = forms.BooleanField(label="Ask for several calls in one answer", required=False)
    further = _build_text_field(
        "Follow-ups of the user",
        3,
        placeholder='["And order 18?", "Thank you."]',
        hint="A text, or a list of texts, which begins with [ or a dash. Each follows the answer to the one before.",
    )
    group = forms.CharField(
        label="Group", max_length=16, required=False, help_text="Its rates are shown apart, as own_GROUP."
    )
    behaviour = forms.ChoiceField(
        label="Behaviour",
        choices=[("", "none"), *BEHAVIOUR_LABELS.items()],
        required=False,
        help_text="Whether it occurred is shown with each verdict.",
    )
    control = forms.BooleanField(label="Control: the model must not call a tool; tools may be empty", required=False)
    workspace = _build_text_field(
        "Workspace",
        2,
        placeholder='{"id": "w1", "writable": "foo"}',
        hint="With it, state_get and state_patch read and change the draft of the state, as in the case study.",
    )
    settings = _build_text_field(
        "Settings", 2, placeholder='{"max_tokens": 256}', hint=f"Any of {', '.join(SETTINGS)}."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in {"message", "expect", "system", "results"} & self.fields.keys():
            field = self.fields[name]
            text = self.data.get(name) if self.is_bound else self.get_initial_for_field(field, name)
            rows = min(_MAX_FILLED_ROWS, len(str(text or "").splitlines()) + 1)
            field.widget.attrs["rows"] = max(field.widget.attrs["rows"], rows)

    @property
    def flags(self) -> tuple[forms.BoundField, ...]:
        """Return the checkboxes."""
        return self["parallel"], self["control"]

    @property
    def is_expanded(self) -> bool:
        """Return whether the collapsed group of fields is expanded.

        The group is expanded if one of its fields has an error, or one of _EXPANDING_FIELDS has a value.
        """
        collapsed_fields = [self[name] for name in self.fields if name not in ("tools", "message", "expect")]
        return any(field.errors for field in collapsed_fields) or any(self[name].value() for name in _EXPANDING_FIELDS)

    def save(self, *, slug: str = "", from_trial: int | None = None, run_form: forms.Form | None = None) -> Case | None:
        """Save a new case, or a new version of the case `slug`.

        Args:
            slug: slug of an existing case; empty for a new case.
            from_trial: primary key of the trial from which a new case was made; None without one.
            run_form: another form that must be valid for a save; None for none.

        Returns:
            The case; None if this form or `run_form` is empty or not valid.

        Raises:
            UnknownCaseError: there is no case `slug`.
        """
        if not self.is_bound:
            return None
        is_valid = self.is_valid()
        data = dict(self.cleaned_data)
        set_name, read_number = data.pop("set", "").strip(), data.pop("read_number", None)
        try:
            title, case = parse_draft(CaseDraft(**data))
            if not is_valid or (run_form is not None and not run_form.is_valid()):
                return None
            if slug:
                return edit_case(slug, title, case, read_number)
            return add_case(title, case, NewCaseOptions(set=set_name, from_trial=from_trial))
        except InvalidFieldsError as error:
            self.add_errors(error)
            return None

    @classmethod
    def from_request(cls, data: QueryDict | None, query: QueryDict) -> tuple[Self, str]:
        """Return the form as sent, else filled in from the query, else empty.

        Args:
            data: values of the sent form; None if none was sent.
            query: URL parameters: a `trial`, a `scenario` with `seed` and `version`, or `example=1`.

        Returns:
            The form, and a note about the origin of its content; the note may be empty.

        Raises:
            CaseNotCreatedError: the trial or the scenario does not exist, or no case can be made from it.
        """
        trial, slug = query.get("trial", ""), query.get("scenario", "")
        trial_id = parse_whole_number(trial)
        if trial and trial_id is None:
            raise CaseNotCreatedError(f"There is no trial {trial[:20]}.")
        if data is not None:
            return cls(data), ""
        if trial_id is not None:
            draft, note = build_draft_from_trial(trial_id)
        elif slug:
            draft, note = build_draft_from_scenario(slug, query.get("seed", ""), query.get("version", ""))
        else:
            draft, note = (EXAMPLE_DRAFT, EXAMPLE_NOTE) if query.get("example") == "1" else (CaseDraft(), "")
        return cls.from_draft(draft), note

    @classmethod
    def from_draft(cls, draft: CaseDraft) -> Self:
        """Return the form filled in from a draft."""
        return cls(initial=asdict(draft))

    @classmethod
    def for_version(cls, data: QueryDict | None, page: CasePage) -> Self:
        """Return the form of a new version of a case, as sent or filled in from the current version."""
        return cls(data, initial={**asdict(page.draft), "read_number": page.case.current})


class CaseImportForm(forms.Form):
    """Form for importing cases from a file or from pasted text."""

    file = forms.FileField(label="File", required=False)
    text = _build_text_field("Or its content", 10)
    set = forms.CharField(
        label="Set",
        max_length=80,
        required=False,
        help_text="For new test cases. If blank: the set named in each of them, otherwise My cases.",
    )

    def save(self) -> CaseImportResult | None:
        """Import the cases.

        Returns:
            The result; None if the form has errors.
        """
        if not self.is_valid():
            return None
        uploaded_file = self.cleaned_data["file"]
        field = "file" if uploaded_file else "text"
        if uploaded_file and uploaded_file.size > MAX_FILE_BYTES:
            size, limit = f"{uploaded_file.size:,}", f"{MAX_FILE_BYTES:,}"
            self.add_error(field, f"The file has {size} bytes. Split it: a file may have {limit}. Nothing was saved.")
            return None
        try:
            text = uploaded_file.read().decode("utf-8-sig") if uploaded_file else self.cleaned_data["text"]
            return import_cases(text, self.cleaned_data["set"].strip())
        except UnicodeDecodeError as error:
            self.add_error(field, f"Save the file in UTF-8: byte {error.start + 1} cannot be read. Nothing was saved.")
        except CaseImportError as error:
            for sentence in error.sentences[:_MAX_SHOWN_ERRORS]:
                self.add_error(field, sentence)
        except InvalidFieldsError as error:
            add_form_errors(self, error)
        return None


class CaseRunForm(forms.Form):
    """Form for starting trials of a case: model and number of trials."""

    model = forms.ChoiceField(label="Model")
    trials = forms.IntegerField(label="Times", min_value=1, max_value=MAX_CELL_TRIALS, initial=20)

    def __init__(self, data: QueryDict | None = None, *, model: int | None = None) -> None:
        """Build the form.

        Args:
            data: values of the form; ignored if `model` is missing, since they are then those of another form.
            model: primary key of the model that is chosen at first; None for the first model of the list.
        """
        super().__init__(data if data is not None and "model" in data else None, initial={"model": model})
        field = self.fields["model"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            (provider, [(str(pk), name) for pk, name in models]) for provider, models in get_model_choices()
        ]

    def to_request(self, slug: str) -> RunRequest | None:
        """Return the request for a run of the case; None if the form is empty or not valid."""
        if not self.is_valid():
            return None
        return build_run_request((slug,), int(self.cleaned_data["model"]), self.cleaned_data["trials"])
