"""Words that may stand at one place of an address; any other is an address that is not there."""

from django.urls.converters import StringConverter


class Side(StringConverter):
    """Of an exchange."""

    regex = "request|response"


class Table(StringConverter):
    """As what a table can be taken away."""

    regex = "csv|json"


class Sheet(StringConverter):
    """As what a page of figures can be taken away."""

    regex = "csv|json|md"


class CaseFile(StringConverter):
    """As what cases can be taken away."""

    regex = "jsonl|yaml"
