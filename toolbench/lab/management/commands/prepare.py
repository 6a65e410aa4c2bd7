"""`manage.py prepare`: prepare the database and the static files before the processes start."""

from django.core.management import call_command
from django.core.management.base import BaseCommand

from toolbench.lab.credentials.keys import ensure_key_file
from toolbench.lab.worker.local_servers import withdraw_host_servers


class Command(BaseCommand):
    """Command that prepares the start of the processes."""

    requires_system_checks = ()
    help = "Migrate, load the built-in data, collect static files, and delete old addresses of local servers."

    def handle(self, **options: object) -> None:
        """Migrate, load the built-in data, collect static files and delete old addresses of local servers.

        The key file is created if it does not exist.
        """
        call_command("migrate", interactive=False, verbosity=1)
        call_command("catalogue")
        # An outdated copy may have a newer date than the file, so all copies are deleted first.
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        withdraw_host_servers()
        ensure_key_file()  # so that it can be copied to another host before the first key is stored
