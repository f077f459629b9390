"""The errors of decoders, what can be written again, and limits of depth and size for YAML."""

from collections import Counter
from typing import Any, TypeVar

import msgspec
import yaml

from labelwise.common.errors import InputError

Kind = TypeVar("Kind")

# The errors of msgspec for JSON: bytes that aren't UTF-8 and deep nesting have exceptions of their own.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
DEEPEST = 100  # levels; the C library behind YAML's decoder crashes at some ten thousand
LARGEST = 10**6  # values; each that is referred to, as `*name`, counts again: a kilobyte can be billions of them
# The errors of YAML's decoder: values may not be what their tags say, as in `!!int ""`, or `2020-13-01`, a date.
YAML_ERRORS = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def is_text(value: Any) -> bool:
    """Tell whether a value can be written: it has no half of a surrogate pair, such as JSON may have it escaped."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def decode_counter(kind: type[Counter[str]], value: dict[str, int]) -> Counter[str]:
    """Make a Counter again of the map that msgspec wrote, as its `dec_hook`."""
    return kind(value)


def decode_yaml(content: bytes, kind: type[Kind], name: str, remedy: str) -> Kind:
    """Decode YAML.

    name, remedy (str): for the error: the file, and what to do.
    RAISES (InputError): it isn't YAML, is nested too deeply, is too large, has a key twice, or is something else.
    """
    try:
        _check_size(content)
        _check_keys(content)
        return msgspec.yaml.decode(content, type=kind)
    except YAML_ERRORS as error:
        raise InputError(f"{name}: {error}; {remedy}") from error


def _check_size(content: bytes) -> None:
    """Check how deep YAML is nested, and how many values it has.

    RAISES (ValueError): too deep, or too many.
    """
    total = 0
    opened: list[tuple[str | None, int]] = []  # collections that haven't ended, each with the values before it
    sizes: dict[str | None, int] = {}
    for event in yaml.parse(content, Loader=yaml.CSafeLoader):
        total += sizes.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = total - before + 1
        if len(opened) > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} deep")
        if total > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} values")


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
