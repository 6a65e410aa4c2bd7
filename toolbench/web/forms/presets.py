"""Form of a preset: a field for each setting of the policy."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.presets import PRESET_FUNCTIONS, list_settings
from toolbench.lab.library.values import MAX_TEXT_CHARACTERS, check_characters, parse_value, render_value
from toolbench.lab.models import Preset
from toolbench.web.forms.library import EntryForm

NOT_SET, CLEARED = "not set", "cleared"
_NULL = "null"
_WORDS = {"true": True, "false": False, _NULL: None}
_SETTINGS = {setting.name: setting for setting in list_settings()}
_PLAIN_KINDS = ("text", "pattern", "text or object")  # typed without quotation marks
_LIST_KINDS = ("list", "transforms", "order", "names")


def _build_field(name: str) -> forms.Field:
    """Return the field of a setting.

    An empty field keeps the value of the lower layers; `null` clears it.
    """
    setting = _SETTINGS[name]
    words = ("true", "false") if setting.kind == "flag" else setting.choices if setting.kind == "choice" else ()
    if words:
        choices = [("", NOT_SET), *((word, word) for word in words), (_NULL, CLEARED)]
        return forms.ChoiceField(choices=choices, required=False, label=name, help_text=setting.doc)
    accepts = f"{setting.accepts[:1].upper()}{setting.accepts[1:]}."
    widget = (
        forms.Textarea({"rows": 2, "spellcheck": "false", "placeholder": NOT_SET})
        if setting.kind in ("object", "aliases", *_LIST_KINDS)
        else forms.TextInput({"spellcheck": "false", "placeholder": NOT_SET})
    )
    return forms.CharField(
        required=False,
        label=name,
        help_text=f"{setting.doc} {accepts}",
        max_length=MAX_TEXT_CHARACTERS,
        widget=widget,
        strip=False,
    )


class PresetForm(EntryForm[Preset]):
    """Form of a preset."""

    functions = PRESET_FUNCTIONS

    description = forms.CharField(label="Purpose", required=False, max_length=2000, widget=forms.Textarea({"rows": 2}))

    def __init__(self, data: QueryDict | None = None, *, initial: Mapping[str, Any] | None = None) -> None:
        """Build the form with a field for each setting."""
        super().__init__(data, initial=dict(initial or {}))
        self.fields.update({_name_field(name): _build_field(name) for name in _SETTINGS})

    @property
    def set_fields(self) -> list[forms.BoundField]:
        """Return the fields of settings that have a value or an error."""
        return [field for field in self._list_fields() if field.value() or field.errors]

    @property
    def other_fields(self) -> list[forms.BoundField]:
        """Return the fields of all other settings."""
        return [field for field in self._list_fields() if not (field.value() or field.errors)]

    def _list_fields(self) -> list[forms.BoundField]:
        return [self[_name_field(name)] for name in _SETTINGS]

    @staticmethod
    def to_initial(content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of the fields for the content of a preset."""
        settings = {_name_field(name): _render_setting(name, value) for name, value in content["patch"].items()}
        return {**content, **settings}

    def build_content(self) -> dict[str, Any] | None:
        """Return the preset's content; None if the form is empty or has errors.

        Each value that cannot be read adds an error to the field of its setting.
        """
        if not self.is_bound:
            return None
        self.is_valid()  # sets `cleaned_data`, which the settings need even if another field has an error
        patch = {}
        for name in _SETTINGS:
            text = self.cleaned_data.get(_name_field(name), "").strip()
            try:
                if text:
                    patch[name] = _parse_setting(name, text)
            except ValueError as error:
                self.add_error(_name_field(name), str(error))
        return None if self.errors else {"patch": patch, "description": self.cleaned_data["description"]}

    def add_errors(self, error: InvalidFieldsError) -> None:
        """Add the errors of the lab to the fields of the settings that they name."""
        sentences_by_field = {
            _name_field(name) if name in _SETTINGS else name: sentences for name, sentences in error.errors.items()
        }
        super().add_errors(InvalidFieldsError(sentences_by_field))


def _name_field(name: str) -> str:
    """Return the name of a setting's field, with a prefix that no other field has."""
    return f"set_{name}"


def _parse_setting(name: str, text: str) -> Any:
    """Parse the value of a setting from a text that is not blank.

    Choices and patterns are plain text, except `null`. Other values are JSON, but texts need no quotation marks, and a
    list may also be names separated by commas: `a, b` stands for ["a", "b"].

    Raises:
        ValueError: the text cannot be read; the message is a sentence.
    """
    kind = _SETTINGS[name].kind
    if text in _WORDS and (kind == "flag" or text == _NULL):
        return _WORDS[text]
    is_json = text[0] == '"' or (kind != "text" and text[0] in "[{")
    if kind in ("choice", "pattern") or (kind in (*_PLAIN_KINDS, *_LIST_KINDS) and not is_json):
        check_characters(text)
        return [part.strip() for part in text.split(",") if part.strip()] if kind in _LIST_KINDS else text
    return parse_value(text)


def _render_setting(name: str, value: Any) -> str:
    """Return the text that `_parse_setting` reads as the value: plain text if possible, else JSON."""
    kind = _SETTINGS[name].kind if name in _SETTINGS else ""
    text = ""
    if isinstance(value, str) and kind in ("choice", *_PLAIN_KINDS, *_LIST_KINDS):
        text = value
    elif kind in _LIST_KINDS and isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = ", ".join(value)
    return text if _means(name, text, value) else render_value(value)


def _means(name: str, text: str, value: Any) -> bool:
    """Return whether the form reads a setting's text as this value."""
    try:
        return bool(text.strip()) and bool(_parse_setting(name, text.strip()) == value)
    except ValueError:
        return False
