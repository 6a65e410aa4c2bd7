"""Data of a probe's page: progress, the result of each check, and the exchange that the user chose."""

from dataclasses import dataclass

from django.db.models import Sum

from toolbench.engine.capabilities.preset_proposal import PresetProposal, propose_preset
from toolbench.lab.credentials.provider_secrets import list_environment_secrets
from toolbench.lab.endpoints.capabilities import read_probe_capabilities
from toolbench.lab.models import Probe, ProbeExchange
from toolbench.lab.paid_requests import find_model_price
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.traces.code_view import CodeView, render_body
from toolbench.providers.masking.url_keys import mask_address
from toolbench.providers.probing.probes import CHECKS, TITLES

MARK_BY_OUTCOME = {"passed": "pass", "failed": "fail", "unknown": "na"}
FIRST_USE_CHECK_COUNT = 3  # tools, round_trip and shape


@dataclass(frozen=True, slots=True)
class ProbeCheckRow:
    """One check of a probe.

    Attributes:
        mark: the outcome mark: "pass", "fail" or "na".
        word: the outcome: "passed", "failed" or "inconclusive".
        sentence: the result in words.
        exchanges: the numbers of the exchanges on which the result is based.
    """

    title: str
    mark: str
    word: str
    sentence: str
    exchanges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """One exchange with the bodies of its request and its response, formatted for display."""

    exchange: ProbeExchange
    request: CodeView
    response: CodeView


@dataclass(frozen=True, slots=True)
class ProbePage:
    """Data of the page of one probe.

    Attributes:
        checks: the results of the checks that are finished.
        total: the number of checks of a probe of this kind.
        requests: the number of stored exchanges of all executions, also of lost ones.
        tokens: the number of input and output tokens of all executions.
        cost: the cost of all executions in dollars: the sum of the costs that answers state; if no answer states
            one, the cost by the model's price; None if that is unknown.
        awaited: the running probe of the same provider that this queued probe waits for; None if this probe is not
            queued or no probe is running.
        proposal: the preset that the capabilities found by the probe suggest.
        shown: the requested exchange; None if none was requested or it does not exist.
    """

    probe: Probe
    checks: tuple[ProbeCheckRow, ...]
    total: int
    requests: int
    tokens: int
    cost: float | None
    awaited: Probe | None
    proposal: PresetProposal
    shown: ShownExchange | None

    @property
    def address(self) -> str:
        """The base URL that was probed. Keys in it are masked, since earlier versions may have stored them there."""
        return mask_address(self.probe.base_url, list_environment_secrets())

    @property
    def live(self) -> bool:
        """Whether the probe is queued or running."""
        return self.probe.state != Probe.State.DONE


def get_probe_page(probe_id: int, exchange: str = "") -> ProbePage:
    """Return the data of a probe's page.

    Args:
        probe_id: the probe.
        exchange: the number of the exchange to show; "" for none. If several executions have an exchange of this
            number, that of the newest execution is shown.

    Raises:
        Probe.DoesNotExist: there is no such probe.
    """
    probe = Probe.objects.select_related("model", "provider").get(pk=probe_id)
    sums = probe.exchanges.aggregate(
        input_tokens=Sum("input_tokens"), output_tokens=Sum("output_tokens"), cost=Sum("cost")
    )
    is_conformance = probe.kind == Probe.Kind.CONFORMANCE
    tokens = (sums["input_tokens"] or 0, sums["output_tokens"] or 0)
    return ProbePage(
        probe=probe,
        checks=tuple(_build_row(check) for check in probe.checks),
        total=len(CHECKS) if is_conformance else FIRST_USE_CHECK_COUNT,
        requests=probe.exchanges.count(),
        tokens=sum(tokens),
        cost=_compute_cost(probe, *tokens) if sums["cost"] is None else sums["cost"],
        awaited=_find_awaited(probe),
        proposal=propose_preset(read_probe_capabilities(probe)),
        shown=_find_exchange(probe, exchange),
    )


def _compute_cost(probe: Probe, input_tokens: int, output_tokens: int) -> float | None:
    """Return the cost in dollars by the price of the model.

    Returns:
        None if the price is unknown, or if it is not zero and no tokens were counted.
    """
    price = find_model_price(probe.provider, probe.model_name, probe.model.price)
    if price is None or not (price.is_zero or input_tokens + output_tokens > 0):
        return None
    return price.compute_cost(input_tokens, output_tokens)


def _find_awaited(probe: Probe) -> Probe | None:
    if probe.state != Probe.State.QUEUED:
        return None
    return Probe.objects.filter(provider_id=probe.provider_id, state=Probe.State.RUNNING).first()


def _build_row(check: dict[str, object]) -> ProbeCheckRow:
    slug, outcome = str(check["slug"]), str(check["outcome"])
    numbers = check.get("exchanges")
    return ProbeCheckRow(
        title=TITLES.get(slug, slug),
        mark=MARK_BY_OUTCOME.get(outcome, "na"),
        word="inconclusive" if outcome == "unknown" else outcome,
        sentence=str(check["sentence"]),
        exchanges=tuple(numbers) if isinstance(numbers, list) else (),
    )


def _find_exchange(probe: Probe, number: str) -> ShownExchange | None:
    ordinal = parse_whole_number(number)
    exchange = None if ordinal is None else probe.exchanges.filter(ordinal=ordinal).order_by("-execution").first()
    if exchange is None:
        return None
    return ShownExchange(exchange, render_body(bytes(exchange.request)), render_body(bytes(exchange.response)))
