"""Settings: YAML, sections of project.yml as Structs with defaults, and choices."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.resolver import implicit_resolvers

from labelwise.base.conflicts import check_edited
from labelwise.base.errors import InputError
from labelwise.base.removed import PROJECT as REMOVED
from labelwise.base.removed import check_removed

Kind = TypeVar("Kind")
Section = TypeVar("Section", bound=msgspec.Struct)

PROJECT = Path("project.yml")
DATASETS = "datasets.yml"  # declarations of a folder
CONVERSION = "labelwise-brat.json"  # mark of a folder of tasks by `convert-brat`
DUPLICATE_KEY = re.compile('key "(.*)" with value', re.DOTALL)  # ruamel.yaml's message about a repeated key
# The errors of YAML's decoder: values may not be what their tags say, as in `!!int ""`, or `2020-13-01`, a date.
YAML_ERRORS = (YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def find_project() -> Path | None:
    """Find the current folder's project.yml, if any."""
    return PROJECT if PROJECT.is_file() else None


def read_section(
    project: Path | None, name: str, kind: type[Section], other: Sequence[str] = (), *, others: bool = False
) -> Section:
    """Read a section of project.yml; missing or empty values have their defaults.

    other (Sequence[str]): fields that aren't keys of the section.
    others (bool): accept other keys, such as people's own variables.
    RAISES (InputError): if it has an unknown key, or a value of another type or out of range.
    """
    if project is None:
        return kind()
    kind_of_file: Any = dict[str, Any] | None
    content = decode_yaml(project.read_bytes(), kind_of_file, str(project), "write it as weasel reads it") or {}
    # The section `tokenizer` is that of a separate file, where no key was removed.
    check_removed(project, content, REMOVED if name != "tokenizer" else {})
    section = content.get(name) or {}
    types = {field.name: field.type for field in msgspec.structs.fields(kind) if field.name not in other}
    allowed = f"its keys are {', '.join(types)}"
    if not isinstance(section, dict):
        raise InputError(f"{project}: {name}: {section!r} isn't a section; {allowed}")
    values = {}
    for key, value in section.items():
        where = f"{project}: {name}: {key}: {value!r}"
        if key not in types and others:
            continue
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
    """Refuse a value that isn't one of a Literal's choices."""
    if value not in get_args(choices):
        raise InputError(f"{name} {value!r}: give {' or '.join(get_args(choices))}")


def check_choices(record: object) -> None:
    """Refuse a dataclass or Struct with a Literal field whose value isn't one of the choices."""
    for name, hint in get_type_hints(type(record)).items():
        if get_origin(hint) is Literal:
            check_choice(name, getattr(record, name), hint)


def check_types(record: msgspec.Struct) -> None:
    """Refuse a Struct with a field of another type, or out of range; msgspec doesn't on construction."""
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        try:
            msgspec.convert(value, field.type, from_attributes=True)
        except msgspec.ValidationError as error:
            raise InputError(f"{field.name} {value!r}: {error}") from error


class _Words(SafeConstructor):
    """YAML loader that keeps numbers and dates as strings."""


for one in ("int", "float", "timestamp"):
    _Words.add_constructor(f"tag:yaml.org,2002:{one}", SafeConstructor.construct_yaml_str)


def decode_yaml(content: bytes, kind: type[Kind], name: str, remedy: str, *, words: bool = False) -> Kind:
    """Decode YAML 1.2, where `NO` is a word, and `010` is ten.

    words (bool): keep numbers as strings, such as `010` and `1.10`.
    RAISES (InputError): if it has a git conflict or a repeated key, isn't YAML, or has another form.
    """
    check_edited(content, name)
    try:
        return msgspec.convert(_load(content, words), kind, builtin_types=(datetime, date))
    except DuplicateKeyError as error:
        line, key = error.problem_mark.line + 1, DUPLICATE_KEY.findall(error.problem)[0]
        raise InputError(f"{name}: line {line}: {key!r} is there twice; write it once; {remedy}") from error
    except YAML_ERRORS as error:
        quotes = "put it in quotes; " if "Expected `str`, got" in str(error) else ""
        raise InputError(f"{name}: {error}; {quotes}{remedy}") from error


@lru_cache(maxsize=4)  # a command reads several sections of project.yml, 50 ms each
def _load(content: bytes, words: bool) -> Any:
    reader = YAML(typ="safe", pure=True)
    if words:
        reader.Constructor = _Words
    return reader.load(content)


def encode_yaml(content: Any) -> str:
    """Encode YAML with flow-style lists and maps, equal in YAML 1.1 (PyYAML) and 1.2."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)


class _Dumper(yaml.SafeDumper):
    """YAML dumper that quotes strings that YAML 1.1 or 1.2 reads as another type."""


for _, tag, pattern, first in implicit_resolvers:  # of both versions
    _Dumper.add_implicit_resolver(tag, pattern, first)
