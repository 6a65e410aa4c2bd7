"""Schemas that several resources use: ids, pages, counts, rates, times."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from toolbench.lab.query_params import MAX_ID

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
MAX_PAGE_SIZE = 200


class BodySchema(Schema):
    """A body: types are exact, unknown names are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuerySchema(Schema):
    """Parameters of a query string: unknown names are refused."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_names(cls, values: Any, info: ValidationInfo) -> Any:
        """Return the values.

        Raises:
            PydanticCustomError: the query string has a name that is no parameter.
        """
        given = info.context["request"].GET if info.context else {}
        if unknown := sorted(set(given) - set(cls.model_fields)):
            raise PydanticCustomError("unknown_parameter", "{names}", {"names": ", ".join(unknown)[:200]})
        return values


class AgreedBody(BodySchema):
    """Confirmation of paid requests.

    Attributes:
        agreed: the number of paid requests that may be sent, as an earlier answer with status 409 named it.
    """

    agreed: Count = 0


class SentenceDocument(Schema):
    """What an action did, in a sentence."""

    sentence: str


class RateDocument(Schema):
    """A share of trials with its interval.

    Attributes:
        k, n: passed, and counted.
        low, high: ends of the interval, as fractions; null where no interval is valid or nothing was counted.
        interval: the method of the interval.
    """

    k: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    interval: str

    @staticmethod
    def resolve_share(rate: Any) -> float | None:
        """Return the share; None without trials."""
        return rate.share if rate.n else None

    @staticmethod
    def resolve_low(rate: Any) -> float | None:
        """Return the lower end."""
        return None if rate.withheld or not rate.n else rate.low

    @staticmethod
    def resolve_high(rate: Any) -> float | None:
        """Return the upper end."""
        return None if rate.withheld or not rate.n else rate.high


class CountsDocument(Schema):
    """Counts of trials and what they used.

    Attributes:
        cost: dollars; null where the cost of a trial is unknown.
    """

    trials: int
    passed: int
    failed: int
    infra: int
    not_applicable: int
    cancelled: int
    running: int
    queued: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class QuantileDocument(Schema):
    """A quantile of times in milliseconds, with distribution-free 95 % bounds; null where a bound is open."""

    value: float
    low: float | None
    high: float | None
    n: int


class RangeDocument(Schema):
    """A range; both ends are equal for one number."""

    low: float
    high: float
    unit: str
