"""Each policy's table has a function for each value that settings allow; what these decide is tested elsewhere."""

from typing import get_args, get_type_hints

import pytest

from labelwise.merge.rules import policies
from labelwise.merge.rules.policies import Policies

POLICIES = get_type_hints(Policies) | {"annotators": policies.Annotators}


@pytest.mark.parametrize("name", POLICIES)
def test_a_table_has_the_values_of_its_literal_in_their_order(name):
    table = getattr(policies, name.upper())
    assert tuple(table) == get_args(POLICIES[name])
    assert all(function.__doc__ for function in table.values())


@pytest.mark.parametrize("name", POLICIES)
def test_the_first_value_is_the_default(name):
    assert getattr(Policies(), name) == get_args(POLICIES[name])[0]
