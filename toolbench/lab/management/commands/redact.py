"""`manage.py redact`: overwrite known secrets in stored rows and logs."""

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.credentials.redact import list_providers_with_url_secrets, redact_logs, redact_rows
from toolbench.providers.masking.spellings import MIN_SECRET_CHARS

EXPORTS_NOTE = (
    "Earlier exports may contain a key: delete bundles, reports, CSV and JSON files and export them again. If a key "
    "was stored or exported in plain text, replace the key at its provider."
)


class Command(BaseCommand):
    """Command that overwrites known secrets with asterisks, without changing lengths."""

    help = (
        "Overwrite all known keys, secret headers and secret parts of addresses in stored rows and logs with asterisks "
        "of the same length. Counts and verdicts do not change. The command can be repeated at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be overwritten, and change nothing"
        )
        parser.add_argument(
            "--secrets", metavar="FILE", help="further keys, such as old ones, one a line; - for standard input"
        )

    def handle(self, *args: Any, dry_run: bool, secrets: str | None, **options: Any) -> None:
        """Overwrite the secrets and print the counts; with `dry_run`, only count them.

        Raises:
            CommandError: the file of further keys cannot be read, or a key in it is too short.
        """
        known = load_known_secrets(_read_keys(secrets))
        for name in known.unreadable_providers:
            self.stderr.write(f"The key of {name} cannot be read, so it is not searched for.")
        if not known.masker:
            self.stdout.write("No key is known that could be searched for.")
            return
        results = [*redact_rows(known.masker, dry_run=dry_run)]
        results += redact_logs(known.masker, settings.VAR_DIR / "log", dry_run=dry_run)
        verb_phrase = "would be overwritten" if dry_run else "overwritten"
        for result in results:
            if result.changed:
                self.stdout.write(f"{result.name}: {result.changed} of {result.searched} {verb_phrase}")
        changed, searched = sum(result.changed for result in results), sum(result.searched for result in results)
        self.stdout.write(f"{changed} of {searched} rows and lines {verb_phrase}.")
        for name in list_providers_with_url_secrets():
            self.stdout.write(f"The address or prefix of {name} contains a secret. Move it to the key or a header.")
        if changed:
            self.stdout.write(EXPORTS_NOTE)


def _read_keys(path: str | None) -> list[str]:
    """Return the keys in a file, one a line; `-` stands for standard input and None for no file.

    Raises:
        CommandError: the file cannot be read, or a key in it is too short.
    """
    if path is None:
        return []
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    keys = [line.strip() for line in text.splitlines() if line.strip()]
    if any(len(key) < MIN_SECRET_CHARS for key in keys):
        raise CommandError(
            f"A key in {path} has fewer than {MIN_SECRET_CHARS} characters and could occur in ordinary words. "
            "Nothing was changed. Remove that line and run the command again."
        )
    return keys
