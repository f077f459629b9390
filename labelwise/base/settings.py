"""Settings: YAML; sections of project.yml, each read into a Struct; values of a few choices.

Each stage reads its own section into a Struct, whose defaults are those of the stage.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml

from labelwise.base.errors import InputError

Kind = TypeVar("Kind")
Section = TypeVar("Section", bound=msgspec.Struct)

PROJECT = Path("project.yml")
# The errors of YAML's decoder: values may not be what their tags say, as in `!!int ""`, or `2020-13-01`, a date.
YAML_ERRORS = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def find_project() -> Path | None:
    """Find the project.yml of the current folder; None if there is none."""
    return PROJECT if PROJECT.is_file() else None


def read_section(project: Path | None, name: str, kind: type[Section], other: Sequence[str] = ()) -> Section:
    """Read a section of project.yml; what is missing or empty has its default: a key, the section, the file.

    other (Sequence[str]): fields that aren't keys of the section.
    RAISES (InputError): it has another key, or a value of another type or out of its range.
    """
    if project is None:
        return kind()
    kind_of_file: Any = dict[str, Any] | None
    content = decode_yaml(project.read_bytes(), kind_of_file, str(project), "write it as weasel reads it") or {}
    section = content.get(name) or {}
    types = {field.name: field.type for field in msgspec.structs.fields(kind) if field.name not in other}
    allowed = f"its keys are {', '.join(types)}"
    if not isinstance(section, dict):
        raise InputError(f"{project}: {name}: {section!r} isn't a section; {allowed}")
    values = {}
    for key, value in section.items():
        where = f"{project}: {name}: {key}: {value!r}"
        if key not in types:
            raise InputError(f"{where}: the section has no such key; {allowed}")
        if value is None:
            continue
        if get_origin(types[key]) is Literal:
            check_choice(f"{project}: {name}: {key}:", value, types[key])
        try:
            values[key] = msgspec.convert(value, types[key])
        except msgspec.ValidationError as error:
            raise InputError(f"{where}: {error}{'; put it in quotes' if types[key] is str else ''}") from error
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{project}: {name}: {error}") from error


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


def decode_yaml(content: bytes, kind: type[Kind], name: str, remedy: str) -> Kind:
    """Decode YAML.

    name, remedy (str): for the error: the file, and what to do.
    RAISES (InputError): it isn't YAML, has a key twice, or is something else.
    """
    try:
        _check_keys(content)
        return msgspec.yaml.decode(content, type=kind)
    except YAML_ERRORS as error:
        raise InputError(f"{name}: {error}; {remedy}") from error


def _check_keys(content: bytes) -> None:
    """Check that no key is there twice, of which decoders take the last without a word.

    RAISES (ValueError): one is.
    """
    waiting = [yaml.compose(content, Loader=yaml.CSafeLoader)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        keys: set[str] = set()
        for key, value in node.value:
            waiting.append(value)
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} is there twice; write it once")
                keys.add(key.value)
