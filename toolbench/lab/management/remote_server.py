"""Options of commands that work with another installation through its API, and parameters in words."""

import os
from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

from django.core.management.base import CommandError
from django.http import QueryDict

from toolbench.client import ToolbenchClient, ToolbenchError, UnreachableError
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE

TOKEN_VARIABLE = "TOOLBENCH_TOKEN"


def add_server_arguments(parser: ArgumentParser) -> None:
    """Define --server and --token."""
    parser.add_argument("--server", default="", metavar="URL", help="another installation instead of this database")
    parser.add_argument(
        "--token",
        default="",
        help=f"API token of --server; better set {TOKEN_VARIABLE}, which other users of this machine cannot see",
    )


@contextmanager
def open_server(server: str, token: str) -> Iterator[ToolbenchClient]:
    """Open a client of another installation, and turn its errors into those of a command.

    Args:
        server: address of the installation.
        token: API token; "" for that of the environment.

    Raises:
        CommandError: there is no token, the request was refused, or the server did not answer.
    """
    token = token or os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        message = f"Set {TOKEN_VARIABLE} to a token. Create one on the page Tokens of the installation."
        raise CommandError(message, returncode=REFUSED_EXIT_CODE)
    try:
        with ToolbenchClient(server, token) as client:
            yield client
    except (ToolbenchError, UnreachableError, ValueError) as error:
        raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error


def parse_parameters(words: Sequence[str], known: Collection[str]) -> QueryDict:
    """Parse words such as `a_run=12` to the parameters of the page's address.

    Raises:
        CommandError: a word is not of this form, or its name is unknown.
    """
    pairs = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    for word, (name, _) in zip(words, pairs, strict=True):
        if "=" not in word or name not in known:
            message = f"There is no parameter {word!r}: write NAME=VALUE with one of {', '.join(sorted(known))}."
            raise CommandError(message, returncode=REFUSED_EXIT_CODE)
    return QueryDict(urlencode(pairs))


def check_read(ignored: Sequence[str]) -> None:
    """Check that every parameter could be read.

    Raises:
        CommandError: some could not.
    """
    if ignored:
        raise CommandError(f"Change {', '.join(ignored)}: this cannot be read.", returncode=REFUSED_EXIT_CODE)
