"""What decoders raise, and how deep YAML may be nested."""

from typing import TypeVar

import msgspec
import yaml

from labelwise.common.errors import InputError

Kind = TypeVar("Kind")

# What msgspec raises for JSON: bytes that aren't UTF-8 and deep nesting have exceptions of their own.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
DEEPEST = 100  # levels; the C library behind YAML's decoder crashes at some ten thousand


def decode_yaml(content: bytes, kind: type[Kind], name: str, remedy: str) -> Kind:
    """Decode YAML.

    name, remedy (str): for the error: the file, and what to do.
    RAISES (InputError): it isn't YAML, is nested too deeply, or is something else.
    """
    try:
        depth = 0
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise InputError(f"{name}: it is nested more than {DEEPEST} deep; {remedy}")
        return msgspec.yaml.decode(content, type=kind)
    except InputError:
        raise
    except (ValueError, yaml.YAMLError, OverflowError) as error:  # a ValueError may be a date in the 13th month, too
        raise InputError(f"{name}: {error}; {remedy}") from error
