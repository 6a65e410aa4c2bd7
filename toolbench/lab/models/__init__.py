"""Every table of the project."""

from toolbench.lab.models.accounts import AuditEntry, SignInLink
from toolbench.lab.models.cases import Case, CaseSet, CaseVersion
from toolbench.lab.models.catalogue import Model, Preset, Process, Provider, SamplingProfile, ServiceAddress
from toolbench.lab.models.decisions import DecisionRecord
from toolbench.lab.models.histories import History, HistoryTurn
from toolbench.lab.models.job_failures import JobFailure
from toolbench.lab.models.judgements import HumanVerdict, Judgement, Replay
from toolbench.lab.models.probes import Probe, ProbeExchange
from toolbench.lab.models.published import PublishedCell, PublishedRecommendation, PublishedSnapshot
from toolbench.lab.models.refused_parameters import RefusedParameter
from toolbench.lab.models.runs import Cell, CellTimes, Run, RunConfig
from toolbench.lab.models.trials import Step, StepBody, Trial, TrialText

__all__ = [
    "AuditEntry",
    "Case",
    "CaseSet",
    "CaseVersion",
    "Cell",
    "CellTimes",
    "DecisionRecord",
    "History",
    "HistoryTurn",
    "HumanVerdict",
    "JobFailure",
    "Judgement",
    "Model",
    "Preset",
    "Probe",
    "ProbeExchange",
    "Process",
    "Provider",
    "PublishedCell",
    "PublishedRecommendation",
    "PublishedSnapshot",
    "RefusedParameter",
    "Replay",
    "Run",
    "RunConfig",
    "SamplingProfile",
    "ServiceAddress",
    "SignInLink",
    "Step",
    "StepBody",
    "Trial",
    "TrialText",
]
