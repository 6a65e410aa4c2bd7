"""`manage.py link`: print a link that signs in the first owner or another person."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.accounts.sign_in import create_token


class Command(BaseCommand):
    """Command that prints a sign-in link."""

    requires_system_checks = ()
    help = "Print a link that signs in the first owner or another person once, within some hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--base", default=settings.BASE_URL, help="address of the site")
        parser.add_argument("--name", help="name of the account; default: the first owner")

    def handle(self, base: str, name: str | None, **options: object) -> None:
        """Print the link on standard output, and on standard error that it works once and for how many hours.

        Raises:
            CommandError: there is no open account of this name.
        """
        user = User.objects.filter(username=name, is_active=True).first() if name else None
        if name and user is None:
            raise CommandError(f"There is no open account {name}. Invite this person on the page People.")
        path = reverse("sign-in-link", args=[create_token(user)])
        self.stdout.write(f"{base.rstrip('/')}{path}")
        self.stderr.write(f"(one use, within {settings.SIGN_IN_HOURS} hours)")
