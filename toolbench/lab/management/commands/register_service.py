"""`manage.py register_service NAME`: store the address of a local server, or delete it after the server ended."""

import json
import sys

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.worker.local_servers import register_local_server, withdraw_local_server


class Command(BaseCommand):
    """Command that stores or deletes the address of a local server."""

    requires_system_checks = ()
    help = "Store the address of a local server from its ready line (JSON with url, key and model) on standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("name")
        parser.add_argument("--gone", action="store_true", help="the server has ended: delete its address")

    def handle(self, name: str, gone: bool, **options: object) -> None:
        """Store the address from the ready line on standard input; with `gone`, delete the address.

        Raises:
            CommandError: the line is not a ready line.
        """
        if gone:
            return withdraw_local_server(name)
        try:
            register_local_server(name, json.loads(sys.stdin.readline()))
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"The input for {name} is not a ready line: {error}") from error
        return None
