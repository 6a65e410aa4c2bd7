"""Converters that restrict a part of a URL to certain words."""

from django.urls.converters import StringConverter


class BodySideConverter(StringConverter):
    """Side of an exchange."""

    regex = "request|response"


class TableFormatConverter(StringConverter):
    """File format of a table."""

    regex = "csv|json"


class SheetFormatConverter(StringConverter):
    """File format of a page of figures."""

    regex = "csv|json|md"


class CaseFormatConverter(StringConverter):
    """File format of test cases."""

    regex = "jsonl|yaml"


class ListFormatConverter(StringConverter):
    """File format of a list of trials."""

    regex = "csv|json|jsonl"
