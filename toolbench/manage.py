"""Django's command line for Toolbench: `manage.py` in a checkout, `toolbench manage` of an installed wheel."""

import os
import sys
from collections.abc import Sequence

from django.core.management import execute_from_command_line
from django.db.utils import OperationalError

from toolbench.installation import build_command


def main(arguments: Sequence[str] = tuple(sys.argv)) -> None:
    """Run a management command.

    Args:
        arguments: name of the program, name of the command, and the command's arguments.

    Raises:
        SystemExit: the command failed or the database does not answer.
        django.db.OperationalError: the database refused a statement for another reason.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")
    try:
        execute_from_command_line(list(arguments))
    except OperationalError as error:
        if "connection" not in str(error):
            raise
        sys.exit(
            f"The database does not answer: start `{build_command('up')}`, or correct DATABASE_URL. "
            "What was stored is kept."
        )


if __name__ == "__main__":
    main()
