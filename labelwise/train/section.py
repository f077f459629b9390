"""The section [labelwise] of a config: what is rarely set, and spaCy's own sections have no place for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_type_hints

from labelwise.common.errors import InputError
from labelwise.train.out_of_memory import OnOom


class Section(TypedDict):
    """The section, as the saved pipeline has it, too. A key that a config lacks has the first of its values.

    on_oom (str): when memory runs out, "stop", or "halve" what the device is given at a time, and continue.
    portable (bool): on the CPU, compute what every x86-64-v3 processor does; see `common.portable`.
    gpus (int): GPUs of this machine that share each batch, those numbered from 0.
    """

    on_oom: OnOom
    portable: Literal[False, True]
    gpus: Literal[1, 2, 3, 4, 5, 6, 7, 8]


VALUES: dict[str, tuple[Any, ...]] = {key: get_args(hint) for key, hint in get_type_hints(Section).items()}


def check_section(given: Mapping[str, Any], config: Path) -> Section:
    """Check a section, and complete it.

    config (Path): what it was read from.
    RAISES (InputError): it has a key or a value that there isn't.
    """
    for key, value in given.items():
        if key not in VALUES:
            raise InputError(f"{config}: [labelwise] has no {key!r}; give {', '.join(VALUES)}")
        allowed = [json.dumps(one) for one in VALUES[key]]  # as a config has them
        if json.dumps(value) not in allowed:
            raise InputError(f"{config}: [labelwise] {key} = {json.dumps(value)}: give {' or '.join(allowed)}")
    section: Any = {key: values[0] for key, values in VALUES.items()} | dict(given)
    return section
