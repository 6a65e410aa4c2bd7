"""`manage.py register_service NAME`: store where a local server listens, or that it has ended."""

import json
import sys

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.worker.local_servers import register_local_server, withdraw_local_server


class Command(BaseCommand):
    """Command that stores or deletes the address of a local server."""

    requires_system_checks = ()
    help = "Note where a local server listens. Its ready line, JSON with url, key and model, comes on standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("name")
        parser.add_argument("--gone", action="store_true", help="the server has ended; nothing is read")

    def handle(self, name: str, gone: bool, **options: object) -> None:
        """Store the address from the ready line on standard input; with `gone`, delete the address.

        Raises:
            CommandError: the line is not a ready line.
        """
        if gone:
            return withdraw_local_server(name)
        try:
            announced = json.loads(sys.stdin.readline())
            register_local_server(name, announced)
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{name} announced something that is no ready line: {error}") from error
        return None
