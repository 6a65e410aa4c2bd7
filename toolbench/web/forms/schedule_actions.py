"""Actions of the page of a schedule and of its alert rules, one for each button."""

from collections.abc import Callable, Mapping

from django.http import QueryDict

from toolbench.lab.errors import UNKNOWN_BUTTON
from toolbench.lab.models import AlertRule, Schedule
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.schedules.delivery import RULE_WITHOUT_ADDRESS, list_channels, send_test
from toolbench.lab.schedules.edit import ScheduleError, pin_baseline, set_active
from toolbench.lab.schedules.launching import SkippedError, launch_now


class ScheduleActionError(Exception):
    """Raised if an action is not possible or not known; the message says why."""


def act_on_schedule(schedule: Schedule, values: QueryDict) -> str:
    """Execute the action of the sent form and return a sentence about the result.

    Raises:
        ScheduleActionError: the action is not possible now or not known.
    """
    action = SCHEDULE_ACTIONS.get(values.get("action", ""))
    if action is None:
        raise ScheduleActionError(UNKNOWN_BUTTON)
    try:
        return action(schedule, values)
    except (SkippedError, ScheduleError) as error:
        raise ScheduleActionError(f"{error} Nothing was changed.") from error


def act_on_rule(rule: AlertRule, name: str) -> str:
    """Execute `test`, `on`, `off` or `delete` on a rule and return a sentence about the result.

    Raises:
        ScheduleActionError: the action is not known, or a rule without an address cannot be tested.
    """
    if name == "test":
        if not list_channels(rule):
            raise ScheduleActionError(RULE_WITHOUT_ADDRESS)
        return " ".join(send_test(rule))
    if name in ("on", "off"):
        AlertRule.objects.filter(pk=rule.pk).update(active=name == "on")
        return f"The rule “{rule}” is {name}."
    if name == "delete":
        rule.delete()
        return f"The rule “{rule}” and its alerts are deleted."
    raise ScheduleActionError(UNKNOWN_BUTTON)


def _launch(schedule: Schedule, values: QueryDict) -> str:
    return f"Run {launch_now(schedule.pk).pk} is launched."


def _pause(schedule: Schedule, values: QueryDict) -> str:
    set_active(schedule, active=False)
    return "Paused: no run is launched until you resume it."


def _resume(schedule: Schedule, values: QueryDict) -> str:
    set_active(schedule, active=True)
    return "Resumed."


def _delete(schedule: Schedule, values: QueryDict) -> str:
    schedule.delete()
    return f"The schedule {schedule} is deleted. Its runs are kept."


def _pin(schedule: Schedule, values: QueryDict) -> str:
    run_ids = [parse_whole_number(text) for text in values.getlist("baseline")]
    if None in run_ids:
        raise ScheduleActionError("A chosen run does not exist. Nothing was changed.")
    count = pin_baseline(schedule, [run_id for run_id in run_ids if run_id is not None])
    return f"Baseline: {count} run{'' if count == 1 else 's'}. Later runs are compared with it."


SCHEDULE_ACTIONS: Mapping[str, Callable[[Schedule, QueryDict], str]] = {
    "run": _launch,
    "pause": _pause,
    "resume": _resume,
    "delete": _delete,
    "baseline": _pin,
}
