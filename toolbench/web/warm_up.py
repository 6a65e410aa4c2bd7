"""Work that the web server does before it serves, so that the first request does not wait for it."""

from pathlib import Path

from django.conf import settings
from django.template.loader import get_template
from django.urls import get_resolver, reverse


def prepare_pages() -> None:
    """Import all pages, build the table of addresses and compile all templates."""
    get_resolver().url_patterns  # noqa: B018 (imports the views)
    reverse("first")
    folder: Path = settings.BASE_DIR / "templates"
    for path in folder.rglob("*.html"):
        get_template(path.relative_to(folder).as_posix())
