"""Words that may stand at one place of an address; any other is an address that is not there."""

from django.urls.converters import StringConverter


class BodySideConverter(StringConverter):
    """Of an exchange."""

    regex = "request|response"


class TableFormatConverter(StringConverter):
    """As what a table can be taken away."""

    regex = "csv|json"


class SheetFormatConverter(StringConverter):
    """As what a page of figures can be taken away."""

    regex = "csv|json|md"


class CaseFormatConverter(StringConverter):
    """As what cases can be taken away."""

    regex = "jsonl|yaml"
