"""Forms of a rendered page, and the forms that would put the CSRF token into an address."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

TOKEN_FIELD = "csrfmiddlewaretoken"
_CONTROL_TAGS = {"input", "button", "select", "textarea"}
Attributes = dict[str, str]


@dataclass
class HtmlForm:
    """Form of a page: its attributes, and those of its controls."""

    attributes: Attributes
    controls: list[Attributes] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attributes.get("action") or self.attributes.get("class") or "form"

    def carries_token(self) -> bool:
        """Return whether a GET of this form may carry the token: by a button, by Enter or by htmx."""
        tokens = [control for control in self.controls if control.get("name") == TOKEN_FIELD]
        by_htmx = "hx-get" in self.attributes and self.attributes.get("hx-params") != f"not {TOKEN_FIELD}"
        gets = by_htmx or any(self._method(button) == "get" for button in self._buttons())
        always = [token for token in tokens if not _is_button(token)]
        return (gets and bool(always)) or any(by_htmx or self._method(token) == "get" for token in tokens)

    def _buttons(self) -> list[Attributes]:
        """Return the buttons; [{}] without one, since Enter also submits a form without a button."""
        return [control for control in self.controls if _is_button(control)] or [{}]

    def _method(self, button: Attributes) -> str:
        return (button.get("formmethod") or self.attributes.get("method") or "get").lower()


def _is_button(control: Attributes) -> bool:
    kind = control.get("type", "submit" if control.get("tag") == "button" else "text")
    return kind in ("submit", "image")


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self.included: list[str] = []
        self._open: HtmlForm | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs} | {"tag": tag}
        if "hx-include" in attributes:
            self.included.append(attributes["hx-include"])
        if tag == "form":
            self._open = HtmlForm(attributes)
            self.forms.append(self._open)
        elif tag in _CONTROL_TAGS and (form := self._form_of(attributes)):
            form.controls.append(attributes)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None

    def _form_of(self, control: Attributes) -> HtmlForm | None:
        if "form" not in control:
            return self._open
        return next((form for form in self.forms if form.attributes.get("id") == control["form"]), None)


def read_forms(html: str) -> list[HtmlForm]:
    """Return every form of a page."""
    return _parse_html(html).forms


def find_leaks(html: str) -> list[str]:
    """Return the names of forms whose GET may carry the token, and every `hx-include`, which takes in other forms."""
    read = _parse_html(html)
    return [form.name for form in read.forms if form.carries_token()] + read.included


def _parse_html(html: str) -> _FormParser:
    reader = _FormParser()
    reader.feed(html)
    return reader
