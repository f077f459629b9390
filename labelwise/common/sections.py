"""The sections of project.yml: each stage reads its own into a Struct, whose defaults are those of the stage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_origin

import msgspec

from labelwise.common.choices import check_choice
from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError

Section = TypeVar("Section", bound=msgspec.Struct)


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
