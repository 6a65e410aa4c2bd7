"""Template tag that renders a command of this installation."""

from django.template import Context, Template


def test_command_tag_renders_command_of_checkout() -> None:
    template = Template('{% load installation %}{% command "import_bundle" "FILE" %}, {% command "up" %}')
    assert template.render(Context()) == "manage.py import_bundle FILE, make up"
