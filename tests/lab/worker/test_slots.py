from uuid import uuid4

from toolbench.lab.worker.slots import MAX_UNSTORED_TRIALS, SlotHints, Slots


def test_an_ended_trial_frees_its_slot_until_the_database_knows_of_its_end() -> None:
    slots, lease = Slots(), uuid4()
    slots.mark_finished(lease)
    assert slots.freed.is_set()
    assert slots.build_hints() == SlotHints(finished_leases=(lease,))
    slots.mark_stored(lease)
    assert slots.build_hints() == SlotHints()


def test_so_many_ends_may_wait_to_be_stored_and_no_more_slots_are_free() -> None:
    slots, leases = Slots(), [uuid4() for _ in range(MAX_UNSTORED_TRIALS + 1)]
    for lease in leases:
        slots.mark_finished(lease)
    assert slots.build_hints().finished_leases == tuple(leases[:-1])
    slots.freed.clear()
    slots.mark_stored(leases[0])
    assert slots.freed.is_set()
    assert slots.build_hints().finished_leases == tuple(leases[1:])


def test_a_slot_is_kept_for_each_trial_that_comes_back() -> None:
    slots = Slots()
    with slots.reserve(), slots.reserve():
        assert slots.build_hints() == SlotHints(reserved_slots=2)
    assert slots.build_hints() == SlotHints()
