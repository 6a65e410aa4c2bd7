"""`manage.py link`: print a link that signs in the owner."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.urls import reverse

from toolbench.lab.sign_in import create_token


class Command(BaseCommand):
    """Command that prints a sign-in link."""

    requires_system_checks = ()
    help = "Print a link that signs in the owner: one use, some hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--base", default=settings.BASE_URL, help="the address of the site")

    def handle(self, base: str, **options: object) -> None:
        """Print the link on standard output and its limits on standard error."""
        path = reverse("sign-in-link", args=[create_token()])
        self.stdout.write(f"{base}{path}")
        self.stderr.write(f"(one use, within {settings.SIGN_IN_HOURS} hours)")
