"""Form of an alias of the gateway."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from toolbench.lab.cases.pages import get_model_choices
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import ModelAlias, RunConfig, SamplingProfile
from toolbench.lab.planning.lookup import METHODS
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.serving.aliases import AliasChoice, save_alias
from toolbench.web.forms.errors import add_form_errors


class AliasForm(forms.Form):
    """Form of an alias. With a measured configuration, the alias has that configuration's model and settings."""

    name = forms.CharField(label="Name", max_length=100, help_text="What programs send as the model.")
    model = forms.ChoiceField(label="Model")
    profile = forms.ChoiceField(label="Sampling profile")
    strategy = forms.CharField(
        label="Strategy", max_length=200, initial="production", help_text="As in New run: raw, production, or presets."
    )
    method = forms.ChoiceField(label="Method", choices=[(name, name) for name in METHODS], initial="auto")
    config = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput())
    repairs = forms.BooleanField(label="Ask once more for a call that is not valid", required=False, initial=True)
    fallbacks = forms.CharField(
        label="Fallbacks",
        max_length=600,
        required=False,
        help_text="Other aliases, in order, separated by commas. They are tried when the provider fails.",
    )
    keep_percent = forms.IntegerField(label="Requests to keep, in percent", min_value=0, max_value=100, initial=100)
    keep_bodies = forms.BooleanField(label="Keep the bodies, not only figures", required=False, initial=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the form with the current models and profiles as choices."""
        super().__init__(*args, **kwargs)
        models = [(provider, [(str(pk), name) for pk, name in rows]) for provider, rows in get_model_choices()]
        self._set_choices("model", models)
        names = SamplingProfile.objects.order_by("name").values_list("name", flat=True)
        self._set_choices("profile", [(name, name) for name in dict.fromkeys(["default", *names])])
        if self.config_id:
            for name in ("model", "profile", "strategy", "method"):
                self.fields[name].required = False

    @property
    def config_id(self) -> int | None:
        """Return the primary key of the form's measured configuration; None without one."""
        return parse_whole_number(str(self["config"].value() or ""))

    def _set_choices(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @classmethod
    def from_config(cls, config_id: int | None) -> "AliasForm":
        """Return the form, filled in from a measured configuration if it exists."""
        config = RunConfig.objects.filter(pk=config_id).first() if config_id else None
        if config is None:
            return cls()
        initial = {name: getattr(config, name) for name in ("profile", "strategy", "method")}
        name = config.model_name.rpartition("/")[2]
        return cls(initial=initial | {"config": config.pk, "model": config.model_id, "name": name})

    @classmethod
    def from_alias(cls, alias: ModelAlias) -> "AliasForm":
        """Return the form filled in from an alias."""
        names = ("name", "profile", "strategy", "method", "repairs", "keep_percent", "keep_bodies")
        initial = {name: getattr(alias, name) for name in names}
        initial |= {"model": alias.model_id, "config": alias.config_id, "fallbacks": ", ".join(alias.fallbacks)}
        return cls(initial=initial)

    def save(self, *, owner: User | None, alias: ModelAlias | None = None) -> ModelAlias | None:
        """Save a new alias, or the changes of `alias`.

        Returns:
            The saved alias; None if the form has errors.
        """
        if not self.is_valid():
            return None
        data = self.cleaned_data
        choice = AliasChoice(
            name=data["name"].strip(),
            model=int(data["model"] or 0),
            profile=data["profile"] or "default",
            strategy=data["strategy"] or "production",
            method=data["method"] or "native",
            config=data["config"],
            repairs=data["repairs"],
            fallbacks=tuple(name.strip() for name in data["fallbacks"].split(",") if name.strip()),
            keep_percent=data["keep_percent"],
            keep_bodies=data["keep_bodies"],
        )
        try:
            return save_alias(choice, owner=owner, alias=alias)
        except InvalidFieldsError as error:
            add_form_errors(self, error)
            return None
