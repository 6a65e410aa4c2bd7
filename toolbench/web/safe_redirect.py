"""Safe redirect targets: only paths of this site."""

from django.utils.http import url_has_allowed_host_and_scheme


def choose_local_path(given: str, otherwise: str = "/") -> str:
    """Return `given` if it is a path of this site, else `otherwise`."""
    safe = given.startswith("/") and url_has_allowed_host_and_scheme(given, allowed_hosts=None)
    return given if safe else otherwise
