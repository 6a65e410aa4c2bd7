"""Canaries of aliases: an alarm about a degrading model returns the alias to its last good binding."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_model
from tests.lab.schedules.scheduled import add_run, make_rule, make_schedule
from tests.lab.scripted_runs import run_worker_session
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from toolbench.lab.models import Alert, AlertRule, AliasBinding, AuditEntry, ModelAlias, Run, Schedule
from toolbench.lab.results.decide.promotion import get_promotion_source
from toolbench.lab.schedules.alerting import check_ended_runs
from toolbench.lab.schedules.canaries import check_canaries, create_canary
from toolbench.lab.schedules.edit import ScheduleSettings
from toolbench.lab.schedules.launching import launch_now
from toolbench.lab.serving.aliases import AliasChoice, freeze_config, save_alias
from toolbench.lab.serving.bindings import BindingChange, Cause, bind_alias
from toolbench.providers.simulated.personas import Persona
from toolbench.providers.simulated.server import SimulatedServer

TRIALS, HEALTHY_NIGHTS, MAX_NIGHTS = 40, 2, 8


@dataclass(slots=True)
class DegradingServer(SimulatedServer):
    """Simulated models whose model `reliable-95` makes its fault at `rate`."""

    latency_factor: float = 0
    rate: float = 0.0

    def find_models(self, name: str) -> tuple[Persona, ...]:
        return tuple(
            replace(persona, rate=self.rate) if persona.slug == "reliable-95" else persona
            for persona in super(DegradingServer, self).find_models(name)
        )


def run_night(schedule: Schedule) -> Run:
    """Launch and execute a run of the canary, then do what the scheduler does at its end."""
    run = launch_now(schedule.pk)
    run_worker_session(get_simulated_model("reliable-95"))
    check_ended_runs()
    check_canaries()
    run.refresh_from_db()
    return run


def promote_with_canary(alias: ModelAlias, run: Run) -> Schedule:
    source = get_promotion_source(run.configs.get().pk, None)
    assert source is not None
    assert source.canary_plan is not None, source.refusal
    settings = ScheduleSettings("Canary of weather", 24, None, 1_000, 100_000)
    schedule = create_canary(source.canary_plan, source.baseline, settings, owner=None)
    change = BindingChange("ann", Cause.PROMOTED, canary=schedule.pk, returns_on_alarm=True)
    bind_alias(alias, freeze_config(source.config.pk), change)
    return schedule


@pytest.mark.django_db(transaction=True)
def test_check_canaries_returns_the_alias_of_a_degrading_model_once() -> None:
    server = DegradingServer()
    with serve_simulated_models(server):
        good_run = run_to_end(get_simulated_model("perfect"), trials=TRIALS, seed=None)
        approved_run = run_to_end(get_simulated_model("reliable-95"), trials=TRIALS, seed=None)
        alias = save_alias(AliasChoice("weather", 0, config=good_run.configs.get().pk), owner=None)
        schedule = promote_with_canary(alias, approved_run)

        for _ in range(HEALTHY_NIGHTS):
            assert run_night(schedule).state == Run.State.FINISHED
        assert alias.bindings.count() == 2
        server.rate = 0.3
        nights = 0
        while alias.bindings.count() == 2 and nights < MAX_NIGHTS:
            alarm_run, nights = run_night(schedule), nights + 1
        for _ in range(2):
            run_night(schedule)

    current, alarmed, first = alias.bindings.all()
    assert (current.cause, current.who, current.policy_hash) == ("alarm", "", first.policy_hash)
    assert current.model_name.endswith("perfect")
    assert alarmed.alarm_run == alarm_run
    assert "success dropped by" in alarmed.alarm
    alias.refresh_from_db()
    assert alias.model_id == first.model_id
    assert AuditEntry.objects.get(subject__contains="last good binding").username == ""


@pytest.fixture
def alias_with_canary() -> tuple[ModelAlias, Schedule]:
    """Make an alias with an earlier binding and a current one, whose canary has a baseline of three good runs."""
    schedule = make_schedule()
    runs = [add_run(schedule, (20, 0), (20, 0), finished_at=timezone.now()) for _ in range(3)]
    schedule.baseline_runs.set(runs)
    alias = ModelAlias.objects.create(name="weather", model=make_model("vendor/old"), policy_hash="old")
    AliasBinding.objects.create(alias=alias, cause="saved", model=alias.model, model_name="old", policy_hash="old")
    config = runs[0].configs.get(model_name="vendor/model-0")
    change = BindingChange(cause=Cause.PROMOTED, canary=schedule.pk, returns_on_alarm=True)
    bind_alias(alias, freeze_config(config.pk), change)
    return alias, schedule


def end_night(schedule: Schedule, *counts: tuple[int, int], **fields: Any) -> None:
    add_run(schedule, *counts, finished_at=timezone.now(), **fields)
    check_ended_runs()


@pytest.mark.django_db
def test_check_canaries_ignores_an_alarm_about_another_configuration(
    alias_with_canary: tuple[ModelAlias, Schedule],
) -> None:
    alias, schedule = alias_with_canary
    make_rule(AlertRule.Kind.DRIFT, schedule)
    end_night(schedule, (20, 0), (0, 20))
    assert Alert.objects.count() == 1
    assert check_canaries() == 0
    assert alias.bindings.count() == 2


@pytest.mark.django_db
def test_check_canaries_ignores_an_alarm_about_other_settings(alias_with_canary: tuple[ModelAlias, Schedule]) -> None:
    alias, schedule = alias_with_canary
    alias.bindings.update(policy_hash="other")
    make_rule(AlertRule.Kind.BELOW_TARGET, schedule, 90)
    end_night(schedule, (0, 20), (20, 0))
    assert Alert.objects.count() == 1
    assert check_canaries() == 0


@pytest.mark.django_db
def test_check_canaries_stores_the_alarm_if_return_is_not_chosen(
    alias_with_canary: tuple[ModelAlias, Schedule],
) -> None:
    alias, schedule = alias_with_canary
    alias.bindings.update(returns_on_alarm=False)
    make_rule(AlertRule.Kind.BELOW_TARGET, schedule, 90)
    end_night(schedule, (0, 20), (20, 0))
    assert (check_canaries(), check_canaries()) == (1, 0)
    current = alias.bindings.all()[0]
    assert "below 90 %" in current.alarm
    assert current.cause == "promoted"


@pytest.mark.django_db
def test_check_canaries_without_a_good_binding_keeps_the_current_one(
    alias_with_canary: tuple[ModelAlias, Schedule],
) -> None:
    alias, schedule = alias_with_canary
    alias.bindings.filter(policy_hash="old").update(alarm="Success dropped.")
    make_rule(AlertRule.Kind.BELOW_TARGET, schedule, 90)
    end_night(schedule, (0, 20), (20, 0))
    assert check_canaries() == 1
    assert alias.bindings.count() == 2
    assert alias.bindings.all()[0].alarm
