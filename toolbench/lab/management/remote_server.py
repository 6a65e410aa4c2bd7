"""Options and client of commands that work with another installation, and parsing of NAME=VALUE arguments."""

import os
from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

from django.core.management.base import CommandError
from django.http import QueryDict

from toolbench.client import ToolbenchClient, ToolbenchError, UnreachableError
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.query_params import describe_unreadable

TOKEN_VARIABLE = "TOOLBENCH_TOKEN"


def add_server_arguments(parser: ArgumentParser) -> None:
    """Define --server and --token."""
    parser.add_argument("--server", default="", metavar="URL", help="use another installation, not this database")
    parser.add_argument(
        "--token",
        default="",
        help=f"API token of --server; better set {TOKEN_VARIABLE}, which other users of this machine cannot see",
    )


@contextmanager
def open_server(server: str, token: str) -> Iterator[ToolbenchClient]:
    """Open a client of another installation, and raise its errors as CommandError.

    Args:
        server: address of the installation.
        token: API token; "" for the token in the environment variable TOKEN_VARIABLE.

    Raises:
        CommandError: there is no token, the address cannot be used, a request was refused, or the server did not
            answer.
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


def parse_parameters(words: Sequence[str], names: Collection[str]) -> QueryDict:
    """Parse words such as `a_run=12` to the parameters of a page's address.

    Args:
        words: the words, each with the form NAME=VALUE.
        names: the allowed names.

    Raises:
        CommandError: a word has another form, or its name is not allowed.
    """
    pairs = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    for word, (name, _) in zip(words, pairs, strict=True):
        if "=" not in word or name not in names:
            message = f"There is no parameter {word!r}: write NAME=VALUE with one of {', '.join(sorted(names))}."
            raise CommandError(message, returncode=REFUSED_EXIT_CODE)
    return QueryDict(urlencode(pairs))


def check_no_unreadable(parameters: Sequence[str]) -> None:
    """Check that no parameter is unreadable.

    Args:
        parameters: the parameters that could not be read, as text.

    Raises:
        CommandError: a parameter is unreadable; the message names all that are.
    """
    if parameters:
        raise CommandError(describe_unreadable(parameters), returncode=REFUSED_EXIT_CODE)
