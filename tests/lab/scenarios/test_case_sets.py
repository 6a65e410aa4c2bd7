"""Case sets as one word in a selection of scenarios, and their privacy."""

import pytest
from pytest_django import DjangoAssertNumQueries

from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.edit import delete_case
from toolbench.lab.models import CaseSet
from toolbench.lab.scenarios.case_sets import CaseSetNotFoundError, expand_set_words, find_slugs_by_word, set_privacy
from toolbench.lab.scenarios.catalogue import find_private

pytestmark = pytest.mark.django_db


def test_expand_set_words_names_current_cases_of_set() -> None:
    import_bfcl(["simple_python"], limit=3)
    case_set = CaseSet.objects.get()
    first, second, third = case_set.cases.values_list("slug", flat=True)
    delete_case(second)

    assert expand_set_words(["happy_path", f"set:{case_set.pk}", first]) == ("happy_path", first, third)
    assert expand_set_words(["set:0", "set:x"]) == ("set:0", "set:x")
    words = ("set:bfcl SIMPLE_python", f"set:{case_set.pk}", f"set:0{case_set.pk}", third.upper(), third)
    expected = dict(zip(words, [(first, third)] * 3 + [(third,)] * 2, strict=True))
    assert find_slugs_by_word((*words, second, "happy_path", "set:none")) == expected


def test_set_privacy_stays_private_after_repeated_import(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    import_bfcl(["simple_python"], limit=1)
    case_set = CaseSet.objects.get()
    set_privacy(case_set.pk, public=False)
    import_bfcl(["simple_python"], limit=2)

    assert not CaseSet.objects.get().public
    slugs = set(case_set.cases.values_list("slug", flat=True))
    with django_assert_num_queries(1):
        assert find_private({*slugs, "happy_path"}) == slugs
    with pytest.raises(CaseSetNotFoundError):
        set_privacy(0, public=True)
