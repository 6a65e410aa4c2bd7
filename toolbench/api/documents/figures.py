"""Schemas that several resources use: bodies, query strings, counts, rates, quantiles, ranges."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from toolbench.api.documents.described import Schema
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.query_params import MAX_ID

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
MAX_PAGE_SIZE = 200  # items of one page of a list


class BodySchema(Schema):
    """Base class of bodies. Types must be exact, and unknown names are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuerySchema(Schema):
    """Base class of query strings. Unknown names are refused."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_names(cls, values: Any, info: ValidationInfo) -> Any:
        """Return the values unchanged if all names of the query string are known.

        Raises:
            PydanticCustomError: the query string has an unknown name.
        """
        parameters = info.context["request"].GET if info.context else {}
        if unknown_names := sorted(set(parameters) - set(cls.model_fields)):
            raise PydanticCustomError("unknown_parameter", "{names}", {"names": ", ".join(unknown_names)[:200]})
        return values


class AgreedBody(BodySchema):
    """Confirmation of paid requests.

    Attributes:
        agreed: number of paid requests that you confirm. If it is too low, the answer is 409 with the number to
            confirm as its member `agreed`, and nothing is changed or sent.
    """

    agreed: Count = 0


class SentenceDocument(Schema):
    """Result of an action.

    Attributes:
        sentence: the result in words.
    """

    sentence: str


class RateDocument(Schema):
    """Share of trials with its interval.

    Attributes:
        k: trials that passed. End-to-end success does not count a pass after a retry by a user.
        n: trials that are counted: with answered success, those that passed or failed, except at the trial deadline;
            with end-to-end success, those that passed, failed or had an infrastructure error.
        share: rate of passed trials as a fraction, null if n is 0. It differs from k / n if the rate weights its
            scenarios equally.
        low: lower bound of the interval, as a fraction; null if n is 0 or the interval is not valid.
        high: upper bound of the interval; null as for `low`.
        interval: name of the interval's method with the confidence level, such as "Wilson, 95 %".
    """

    k: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    interval: str

    @staticmethod
    def resolve_share(rate: Rate) -> float | None:
        """Return the share; None without trials that are counted."""
        return rate.share if rate.n else None

    @staticmethod
    def resolve_low(rate: Rate) -> float | None:
        """Return the lower bound; None without trials that are counted, or without a valid interval."""
        return None if rate.withheld or not rate.n else rate.low

    @staticmethod
    def resolve_high(rate: Rate) -> float | None:
        """Return the upper bound; None without trials that are counted, or without a valid interval."""
        return None if rate.withheld or not rate.n else rate.high

    @staticmethod
    def resolve_interval(rate: Rate) -> str:
        """Return the name of the interval's method, with the confidence level."""
        name: str = rate.interval_name
        return name


class CountsDocument(Schema):
    """Numbers of trials by outcome, and the requests, tokens and cost of all of them.

    Attributes:
        trials: number of trials in any state.
        infra: trials with an infrastructure error.
        not_applicable: trials that neither passed nor failed: their scenario needs tools, and the configuration has
            none or no usable method; or an imported log does not say whether they passed. Some of them sent requests.
        requests: requests to the provider, retries included.
        cost: dollars; null if the cost of a trial is unknown, or if there is no cost yet.
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

    @staticmethod
    def resolve_trials(tally: Tally) -> int:
        """Return the number of trials in any state."""
        return tally.trial_count


class QuantileDocument(Schema):
    """Quantile of `n` times in milliseconds, with distribution-free 95 % bounds.

    Attributes:
        low: lower bound; null if it is open.
        high: upper bound; null if it is open.
        n: number of times.
    """

    value: float
    low: float | None
    high: float | None
    n: int


class RangeDocument(Schema):
    """Range of an estimated figure; for a single number, both ends are equal.

    Attributes:
        unit: unit of both ends: `tokens`, `dollars` or `s`; "" for requests.
    """

    low: float
    high: float
    unit: str
