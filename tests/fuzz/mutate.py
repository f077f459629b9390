"""Changes to inputs that stay well-formed, so that what lies behind a decoder is reached, too."""

import json
import random
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec
import yaml

from labelwise.settings import YAML_ERRORS

# What is put in place of a value.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 255, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63)),
    *(0.0, 1.5, -0.5, 1e308, float("inf"), float("nan"), "", "A", "B", "a cat", " ", "\n", "\0", "é", "e\u0301"),
    *("\U0001f600", "\u2028", "\ufeff", "\ud800", "x" * 300, "accept", "reject", "ignore", "ner", "ner_manual"),
    *("review", "none", "partial", b"", b"\0", b"\xff", b"\x80" * 8, [], {}, [[]], [0, 1, "A"], {"A": "none"}),
]
Bytes = Callable[[bytes], bytes]  # a fuzzer's own change to bytes


def mutate_tree(tree: Any, rng: random.Random, mutate: Bytes) -> Any:
    """Change one place of a tree of lists, dicts and values, in place.

    mutate (Callable[[bytes], bytes]): changes bytes and texts.
    RETURNS (Any): the tree, or what is there instead.
    """
    places = list(_places([tree]))
    holder, key = rng.choice(places)
    value = holder[key]
    match rng.randrange(7):
        case 0:
            holder[key] = rng.choice(VALUES)
        case 1 if isinstance(holder, list) and len(places) > 1:
            holder.insert(key, deepcopy(value))
        case 2 if len(places) > 1:
            del holder[key]
        case 3:
            other, at = rng.choice(places)
            holder[key] = deepcopy(other[at])
        case 4 if isinstance(holder, dict):
            holder[rng.choice(["text", "spans", "label", "start", "end", "answer", "uncovered", "gold", "x"])] = value
        case _:
            holder[key] = _mutate_value(value, rng, mutate)
    return places[0][0][0] if places[0][0] else None


def _places(holder: Any) -> Any:
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], list | dict):
            yield from _places(holder[key])


def _mutate_value(value: Any, rng: random.Random, mutate: Bytes) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value + rng.choice([-1, 1, 7, -value, 2**31, -(2**31), 1 << rng.randrange(70)])
    if isinstance(value, str):
        return mutate(value.encode("utf8", "surrogatepass")).decode("utf8", "replace")
    if isinstance(value, bytes):
        try:
            return pack(mutate_tree(unpack(value), rng, mutate)) if value and rng.random() < 0.7 else mutate(value)
        except (ValueError, TypeError, OverflowError, msgspec.MsgspecError):
            return mutate(value)
    return rng.choice(VALUES)


pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.Decoder().decode


def mutate_packed(data: bytes, rng: random.Random, mutate: Bytes) -> bytes:
    """Change MessagePack so that it stays that."""
    return pack(mutate_tree(unpack(data), rng, mutate))


def mutate_lines(data: bytes, rng: random.Random, mutate: Bytes) -> bytes:
    """Change a line of JSON so that it stays that."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = json.dumps(mutate_tree(json.loads(lines[at]), rng, mutate), default=repr).encode()
    return b"\n".join(lines)


def mutate_yaml(data: bytes, rng: random.Random, mutate: Bytes) -> bytes:
    """Change YAML so that it stays that."""
    try:
        tree = yaml.load(data, Loader=yaml.CSafeLoader)
        return yaml.safe_dump(mutate_tree(tree, rng, mutate), allow_unicode=True).encode()
    except YAML_ERRORS:
        return mutate(data)


def mutated(
    change: Callable[[bytes, random.Random, Bytes], bytes],
    data: bytes,
    seed: int,
    mutate: Bytes,
    *,
    head: int = 0,
    most: int = 4096,
) -> bytes:
    """Change data by its form, or, one time in four and where it hasn't that form, as bytes.

    head (int): bytes of options at the beginning, which are changed, too.
    most (int): the most bytes of what is returned.
    """
    rng = random.Random(seed)
    options, data = bytearray(data[:head].ljust(head, b"\0")), data[head:]
    if head and rng.random() < 0.3:
        options[rng.randrange(head)] = rng.randrange(256)
    try:
        changed = change(data, rng, mutate) if rng.random() < 0.75 else mutate(data)
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError):
        changed = mutate(data)
    return (bytes(options) + changed)[:most]


def any_bytes(rng: random.Random) -> Bytes:
    """Make what a fuzzer has of its own, and a test has not: a plain change to bytes."""
    return partial(_any_bytes, rng)


def _any_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    new = bytes(rng.choices(b'\0\t\n \xff\x80AT09;{}[]":,-*&!', k=rng.randrange(4)))
    return data[:at] + new + data[at + rng.randrange(3) :]
