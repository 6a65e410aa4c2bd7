"""Template tags for command lines and log paths, which differ between a checkout and an installed wheel."""

from django import template

from toolbench.installation import build_command, build_log_path

register = template.Library()


@register.simple_tag
def command(verb: str, arguments: str = "") -> str:
    """Return the command line that a user of this installation enters.

    Args:
        verb: `up`, `link`, `worker` or `reset`, or the name of a management command.
        arguments: text that follows the verb.
    """
    return build_command(verb, arguments)


@register.simple_tag
def log_path(name: str = "") -> str:
    """Return the path of a log file of this installation; without a name, that of the folder of all logs."""
    return build_log_path(name)
