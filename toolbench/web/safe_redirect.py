"""Addresses that came from outside: only a path of this site is ever gone to."""

from django.utils.http import url_has_allowed_host_and_scheme


def choose_local_path(given: str, otherwise: str = "/") -> str:
    """`given` if it is a path of this site, else `otherwise`."""
    safe = given.startswith("/") and url_has_allowed_host_and_scheme(given, allowed_hosts=None)
    return given if safe else otherwise
