"""URL converters that restrict a part of a URL to certain words."""

from django.urls.converters import StringConverter


class BodySideConverter(StringConverter):
    """Body of an exchange: that of the request or that of the response."""

    regex = "request|response"


class TableFormatConverter(StringConverter):
    """File format of the trials of a run."""

    regex = "csv|json"


class SheetFormatConverter(StringConverter):
    """File format of a matrix, a comparison or a decision record."""

    regex = "csv|json|md"


class CaseFormatConverter(StringConverter):
    """File format of test cases."""

    regex = "jsonl|yaml"


class ListFormatConverter(StringConverter):
    """File format of the list of trials."""

    regex = "csv|json|jsonl"
