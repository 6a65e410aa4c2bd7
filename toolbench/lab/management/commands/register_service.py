"""`manage.py register_service NAME`: notes where a local server listens, or with `--gone` that it has ended."""

import json
import sys

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.worker.local_services import register_local_server, withdraw_local_server


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Note where a local server listens. Its ready line, JSON with url, key and model, comes on standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--gone", action="store_true", help="the server has ended; nothing is read")

    def handle(self, name: str, gone: bool, **options: object) -> None:
        if gone:
            return withdraw_local_server(name)
        try:
            announced = json.loads(sys.stdin.readline())
            register_local_server(name, announced)
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{name} announced something that is no ready line: {error}") from error
        return None
