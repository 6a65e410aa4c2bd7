#!/usr/bin/env python3
"""Django's command line for Toolbench."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db.utils import OperationalError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if "connection" not in str(error):
            raise
        sys.exit("The database does not answer: start `make up`, or correct DATABASE_URL. What was stored is kept.")


if __name__ == "__main__":
    main()
