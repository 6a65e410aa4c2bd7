"""Forms for sources of test cases: tools of an MCP server, and recorded traffic with its drafts."""

from typing import Any, NamedTuple

from django import forms
from django.core.files.uploadedfile import UploadedFile

from toolbench.lab.cases.mcp_tools import read_configured_servers, render_tool
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.interchange.traffic.drafts import TrafficImport, import_traffic
from toolbench.lab.interchange.traffic.reading import MAX_FILE_BYTES
from toolbench.lab.interchange.traffic.review import accept_drafts, reject_drafts
from toolbench.lab.query_params import parse_whole_number
from toolbench.providers.mcp.listing import list_mcp_tools
from toolbench.providers.mcp.server import McpServer, McpTool, ToolList, ToolListError


class McpToolChoice(NamedTuple):
    """Choice of a tool, with the text that the form sends for it."""

    tool: McpTool
    text: str


class McpToolChoices(NamedTuple):
    """Choices of the tools that a server has.

    Attributes:
        listed: the server's answer.
        tools: one choice for each tool.
    """

    listed: ToolList
    tools: tuple[McpToolChoice, ...]


class McpToolsForm(forms.Form):
    """Form for the address of an MCP server, or one of the configured servers.

    Attributes:
        configured: the configured servers by name.
        file_error: why the file of configured servers cannot be read; empty if it was read or does not exist.
    """

    server = forms.ChoiceField(label="Configured server", required=False)
    url = forms.CharField(
        label="Address",
        max_length=500,
        required=False,
        widget=forms.TextInput({"placeholder": "https://example.org/mcp", "inputmode": "url", "spellcheck": "false"}),
        help_text="URL of a server with streamable HTTP.",
    )
    authorization = forms.CharField(
        label="Authorization",
        max_length=4000,
        required=False,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text="Value of the header, for example “Bearer …”. It is used once and not stored.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the form; without configured servers, it has no field to choose one."""
        super().__init__(*args, **kwargs)
        self.configured: dict[str, McpServer] = {}
        self.file_error = ""
        try:
            self.configured = read_configured_servers()
        except ToolListError as error:
            self.file_error = str(error)
        field = self.fields["server"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "none: the address below"), *((name, name) for name in self.configured)]
        if not self.configured:
            del self.fields["server"]

    def clean(self) -> dict[str, Any]:
        """Check that a configured server or an address is given."""
        data = super().clean() or {}
        if not self.errors and not data.get("server") and not data.get("url"):
            self.add_error("url", "Enter the address of a server.")
        return data

    def request_choices(self) -> McpToolChoices | None:
        """Request the server's tools.

        Returns:
            The choices; None if the form is empty or has errors, or the request failed, which adds an error.
        """
        if not self.is_valid():
            return None
        data = self.cleaned_data
        configured = self.configured.get(data.get("server", ""))
        server = configured or McpServer(url=data["url"].strip(), authorization=data["authorization"])
        try:
            listed = list_mcp_tools(server)
        except ToolListError as error:
            self.add_error("server" if configured else "url", str(error))
            return None
        return McpToolChoices(listed, tuple(McpToolChoice(tool, render_tool(tool)) for tool in listed.tools))


class TrafficForm(forms.Form):
    """Form for a file of recorded traffic."""

    file = forms.FileField(label="File")

    def clean_file(self) -> "UploadedFile[Any]":
        """Check the size of the file.

        Raises:
            ValidationError: the file is too large.
        """
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_FILE_BYTES:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes. Split it: a file may have {MAX_FILE_BYTES:,}. Nothing was saved."
            )
        return file

    def save(self) -> TrafficImport | None:
        """Import the file and return the result, or None if the form has errors."""
        if not self.is_valid():
            return None
        file = self.cleaned_data["file"]
        return import_traffic(file.read(), file.name or "")


class DraftReviewError(Exception):
    """Raised if drafts cannot be accepted or rejected. The message says why, and nothing was changed."""


class DraftReviewForm(forms.Form):
    """Form that accepts or rejects drafts: the chosen ones, or all open ones."""

    set = forms.CharField(label="Set", max_length=80, required=False)
    decision = forms.ChoiceField(choices=[("accept", "Accept"), ("reject", "Reject")])
    all = forms.BooleanField(required=False)

    def save(self, id_texts: list[str]) -> str:
        """Accept or reject the drafts and return a sentence about the result.

        Args:
            id_texts: primary keys of drafts as the form sent them; other texts are ignored.

        Raises:
            DraftReviewError: the form has errors, no draft is chosen, or the cases cannot be created.
        """
        if not self.is_valid():
            raise DraftReviewError("Choose Accept or Reject, and a name of at most 80 characters for the set.")
        draft_ids = [number for text in id_texts if (number := parse_whole_number(text)) is not None]
        if not draft_ids and not self.cleaned_data["all"]:
            raise DraftReviewError("Choose at least one draft.")
        chosen_ids = None if self.cleaned_data["all"] else draft_ids
        if self.cleaned_data["decision"] == "accept":
            try:
                count = accept_drafts(chosen_ids, self.cleaned_data["set"])
            except InvalidFieldsError as error:
                raise DraftReviewError(str(error)) from error
            return f"{count:,} test cases created." if count != 1 else "1 test case created."
        count = reject_drafts(chosen_ids)
        return f"{count:,} drafts rejected." if count != 1 else "1 draft rejected."
