"""All tables of Toolbench."""

from toolbench.lab.models.accounts import ApiToken, AuditEntry, LaunchKey, ShareLink, SignInLink
from toolbench.lab.models.cases import Case, CaseSet, CaseVersion
from toolbench.lab.models.catalogue import (
    ClaimingWorker,
    Model,
    PacePoint,
    Preset,
    PriceList,
    Process,
    Provider,
    ProviderPace,
    SamplingProfile,
    ServiceAddress,
)
from toolbench.lab.models.decisions import DecisionRecord
from toolbench.lab.models.histories import History, HistoryTurn
from toolbench.lab.models.job_failures import JobFailure
from toolbench.lab.models.judgements import HumanVerdict, Judgement, Replay
from toolbench.lab.models.library import LibraryVersion
from toolbench.lab.models.pools import CausePool, CellPool, PoolState, RunChange
from toolbench.lab.models.probes import Probe, ProbeExchange
from toolbench.lab.models.published import PublishedCell, PublishedRecommendation, PublishedSnapshot
from toolbench.lab.models.refused_parameters import RefusedParameter
from toolbench.lab.models.retention import RetentionRule
from toolbench.lab.models.runs import Cell, CellTimes, Run, RunConfig
from toolbench.lab.models.saved_views import SavedView
from toolbench.lab.models.schedules import Alert, AlertDelivery, AlertRule, Schedule
from toolbench.lab.models.serving import (
    AliasBinding,
    GatewaySpending,
    GatewayTrace,
    GatewayTraceText,
    ModelAlias,
    SpendingWriter,
)
from toolbench.lab.models.traffic import TrafficDraft
from toolbench.lab.models.trials import Step, StepBody, Trial, TrialText

__all__ = [
    "Alert",
    "AlertDelivery",
    "AlertRule",
    "AliasBinding",
    "ApiToken",
    "AuditEntry",
    "Case",
    "CaseSet",
    "CaseVersion",
    "CausePool",
    "Cell",
    "CellPool",
    "CellTimes",
    "ClaimingWorker",
    "DecisionRecord",
    "GatewaySpending",
    "GatewayTrace",
    "GatewayTraceText",
    "History",
    "HistoryTurn",
    "HumanVerdict",
    "JobFailure",
    "Judgement",
    "LaunchKey",
    "LibraryVersion",
    "Model",
    "ModelAlias",
    "PacePoint",
    "PoolState",
    "Preset",
    "PriceList",
    "Probe",
    "ProbeExchange",
    "Process",
    "Provider",
    "ProviderPace",
    "PublishedCell",
    "PublishedRecommendation",
    "PublishedSnapshot",
    "RefusedParameter",
    "Replay",
    "RetentionRule",
    "Run",
    "RunChange",
    "RunConfig",
    "SamplingProfile",
    "SavedView",
    "Schedule",
    "ServiceAddress",
    "ShareLink",
    "SignInLink",
    "SpendingWriter",
    "Step",
    "StepBody",
    "TrafficDraft",
    "Trial",
    "TrialText",
]
