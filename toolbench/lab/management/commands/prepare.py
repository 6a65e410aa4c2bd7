"""`manage.py prepare`: prepare the database and files before any process is started."""

from django.core.management import call_command
from django.core.management.base import BaseCommand

from toolbench.lab.worker.local_servers import withdraw_host_servers


class Command(BaseCommand):
    """Command that prepares the start."""

    requires_system_checks = ()
    help = "Migrate, load the catalogue, collect the static files, forget where local servers listened before."

    def handle(self, **options: object) -> None:
        """Migrate, load the built-in data, collect static files and delete old addresses of local servers."""
        call_command("migrate", interactive=False, verbosity=1)
        call_command("catalogue")
        call_command(
            "collectstatic", interactive=False, clear=True, verbosity=0
        )  # clear, since an outdated copy may have a newer date
        withdraw_host_servers()
