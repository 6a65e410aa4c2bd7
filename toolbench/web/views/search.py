"""View of the command palette: pages, commands, terms, models, runs, trials and scenarios."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from toolbench.lab.accounts.roles import Role, has_role
from toolbench.lab.results.site_search import Hit, HitGroup, search_site
from toolbench.web.context_processors import SECTIONS
from toolbench.web.rendering import render_page
from toolbench.web.requests import find_user

COMMANDS = (  # label, URL name, required role
    ("New run", "run-new", Role.OPERATOR),
    ("Connect a provider", "provider-new", Role.OWNER),
    ("New test case", "case-new", Role.OPERATOR),
    ("Import test cases", "case-bring", Role.OPERATOR),
    ("Test cases from recorded traffic", "case-drafts", Role.VIEWER),
    ("Tools from an MCP server", "case-mcp", Role.OPERATOR),
    ("Invite a user", "people", Role.OWNER),
    ("Audit list", "audit", Role.OPERATOR),
    ("Health", "health", Role.VIEWER),
    ("Decision records", "records", Role.VIEWER),
    ("Help", "help", Role.VIEWER),
)


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the matches of ?q=, as a page or, for htmx, in the palette; without it, all commands and pages."""
    text = request.GET.get("q", "")
    label_part = text.strip().lower()
    page_groups = _find_commands_and_pages(request, label_part)
    first_groups = tuple(group for group in page_groups if _has_label_start(group, label_part))
    # If the label of a page begins with the text, users mostly mean that page. So pages then come before commands.
    groups = (*first_groups[::-1], *search_site(text), *(group for group in page_groups if group not in first_groups))
    return render_page(request, "search/show.html", {"q": text, "groups": groups}, part="found")


def _has_label_start(group: HitGroup, text: str) -> bool:
    """Return whether a label of the group begins with the text; False for an empty text."""
    return bool(text) and any(hit.label.lower().startswith(text) for hit in group.hits)


def _find_commands_and_pages(request: HttpRequest, text: str) -> tuple[HitGroup, ...]:
    """Return the groups of commands and of pages whose labels contain a text in lower case.

    Commands that the user's role does not allow and groups without a match are left out.
    """
    pages = {section.label: Hit(section.label, section.url) for section in SECTIONS}
    pages |= {tab.label: Hit(tab.label, tab.url, section.label) for section in SECTIONS for tab in section.tabs}
    user = find_user(request)
    commands = [Hit(label, reverse(name)) for label, name, role in COMMANDS if user and has_role(user, role)]
    groups = {"Commands": commands, "Pages": pages.values()}
    matches = {title: tuple(hit for hit in hits if text in hit.label.lower()) for title, hits in groups.items()}
    return tuple(HitGroup(title, hits) for title, hits in matches.items() if hits)
