"""`manage.py prepare`: what has to be done before anything is started."""

from django.core.management import call_command
from django.core.management.base import BaseCommand

from toolbench.lab.worker.local_services import withdraw_host_servers


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Migrate, load the catalogue, collect the static files, forget where local servers listened before."

    def handle(self, **options: object) -> None:
        call_command("migrate", interactive=False, verbosity=1)
        call_command("catalogue")
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)  # a copied file may seem newer
        withdraw_host_servers()
