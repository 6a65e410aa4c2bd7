"""`manage.py prepare`: prepare the database and the static files before the processes start."""

from django.core.management import call_command
from django.core.management.base import BaseCommand

from toolbench.lab.credentials.keys import ensure_key_file
from toolbench.lab.worker.local_servers import withdraw_host_servers


class Command(BaseCommand):
    """Command that prepares the start of the processes."""

    requires_system_checks = ()
    help = "Migrate, load built-in data, collect static files, and delete old addresses of this host's local servers."

    def handle(self, **options: object) -> None:
        """Migrate the database, load the built-in data and collect static files.

        The addresses of local servers of this host are deleted, and the key file is created if it does not exist.
        """
        call_command("migrate", interactive=False, verbosity=1)
        call_command("catalogue")
        # collectstatic keeps a copy that is newer than its source, even an outdated one: so delete all copies first.
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        withdraw_host_servers()
        ensure_key_file()  # so that the file can be copied to another host before the first key is stored
