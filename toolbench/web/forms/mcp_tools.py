"""Form that reads tools from an MCP server."""

from typing import Any, NamedTuple

from django import forms

from toolbench.lab.cases.mcp_tools import build_draft_from_tools, read_configured_servers, render_tool
from toolbench.providers.mcp.listing import list_mcp_tools
from toolbench.providers.mcp.server import McpServer, McpTool, ToolList, ToolListError
from toolbench.web.forms.cases import CaseForm


class McpToolChoice(NamedTuple):
    """Tool of the list, with the text that the form sends if it is chosen."""

    tool: McpTool
    text: str


class McpToolChoices(NamedTuple):
    """Tools that a server listed."""

    listed: ToolList
    tools: tuple[McpToolChoice, ...]


class McpToolsForm(forms.Form):
    """Form for the address of an MCP server, or one of the configured servers."""

    server = forms.ChoiceField(label="Configured server", required=False)
    url = forms.CharField(
        label="Address",
        max_length=500,
        required=False,
        widget=forms.TextInput({"placeholder": "https://example.org/mcp", "inputmode": "url", "spellcheck": "false"}),
        help_text="Of a server that speaks streamable HTTP.",
    )
    authorization = forms.CharField(
        label="Authorization",
        max_length=4000,
        required=False,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text="Value of the header, for example “Bearer …”. It is used once and not stored.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the form; without configured servers it has no choice of one."""
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
        """Require a server or an address."""
        data = super().clean() or {}
        if not self.errors and not data.get("server") and not data.get("url"):
            self.add_error("url", "Enter the address of a server.")
        return data

    def read_choices(self) -> McpToolChoices | None:
        """Ask the server for its tools; None if nothing was sent or the form has errors, which name the reason."""
        if not self.is_valid():
            return None
        data = self.cleaned_data
        chosen = self.configured.get(data.get("server", ""))
        server = chosen or McpServer(url=data["url"].strip(), authorization=data["authorization"])
        try:
            listed = list_mcp_tools(server)
        except ToolListError as error:
            self.add_error("server" if chosen else "url", str(error))
            return None
        return McpToolChoices(listed, tuple(McpToolChoice(tool, render_tool(tool)) for tool in listed.tools))


def build_case_form(texts: list[str]) -> CaseForm:
    """Return the form of a new case with these tools, each a text of `render_tool`.

    Raises:
        ToolListError: there is no tool, or a text is not that of a tool.
    """
    return CaseForm.from_draft(build_draft_from_tools(texts))
