"""Values that must be one of a few: those that a Literal lists."""

from typing import Any, Literal, get_args, get_origin, get_type_hints

from labelwise.common.errors import InputError


def check_choice(name: str, value: object, choices: Any) -> None:
    """Check that a value is one of those that a Literal lists.

    RAISES (InputError): it isn't.
    """
    if value not in get_args(choices):
        raise InputError(f"{name} {value!r}: give {' or '.join(get_args(choices))}")


def check_choices(record: object) -> None:
    """Check each field of a record, such as a dataclass or a Struct, whose type is a Literal.

    RAISES (InputError): a value isn't one that the Literal lists.
    """
    for name, hint in get_type_hints(type(record)).items():
        if get_origin(hint) is Literal:
            check_choice(name, getattr(record, name), hint)
