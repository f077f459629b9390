"""YAML from anywhere."""

import subprocess
import sys

import pytest

from labelwise.common.decoding import decode_yaml
from labelwise.common.errors import InputError


def refer_often(to: bytes) -> bytes:
    """Ten lines, each of which has the line before ten times: 10 billion values."""
    return b"".join(b"- &%c %s\n" % (n + 1, to % b", ".join([b"*%c" % n] * 10)) for n in b"abcdefghij")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"[" * 101 + b"]" * 101,
        b"- " * 100_000,
        b"{a: " * 100_000,
        b"a:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 300)),
        b"a: 2020-13-45",
        b"\xff\xfe\x00",
        b"caf\xe9",
        b"a: &a [*a]",
        b"\t:",
        b"%YAML 9.9\n---\n[",
        b"a: !!python/object:os.system x",
        b"a: !!int x",
        b"a: !!int ''",
        b"a: !!float ''",
        b"a: !!bool maybe",
        b"a: !!timestamp soon",
        b"- &a {x: 1}\n" + refer_often(b"{<<: [%s]}"),
        b"- &a [1]\n" + refer_often(b"[%s]"),
        b"? [a]\n: b",
        b"a: 0x" + b"f" * 10_000,
    ],
)
def test_what_is_no_yaml_or_something_else_is_an_error_that_names_the_file(content):
    """In a process of its own: the decoder's C library has crashed."""
    code = (
        "import sys; from labelwise.common.decoding import InputError, decode_yaml\n"
        "try: decode_yaml(sys.stdin.buffer.read(), list[str], 'x.yml', 'fix it')\n"
        "except InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"x.yml: ")
    assert done.stdout.endswith(b"; fix it\n")


def test_yaml_may_be_nested():
    nested: list = []
    for _ in range(98):
        nested = [nested]
    assert decode_yaml(b"[" * 99 + b"]" * 99, list, "x.yml", "") == nested
    with pytest.raises(InputError, match="Expected `str`"):
        decode_yaml(b"[1]", list[str], "x.yml", "")


def test_a_key_that_is_there_twice_is_an_error():
    content = b"- name: a\n  path: a.jsonl\n  labels: [A]\n  path: b.jsonl\n"
    with pytest.raises(InputError, match=r"x\.yml: line 4: 'path' is there twice; write it once; a remedy"):
        decode_yaml(content, list[dict], "x.yml", "a remedy")
    assert decode_yaml(b"a: &x {b: 1}\nc: *x\nd: {b: 2}\n", dict, "x.yml", "") == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": {"b": 2},
    }
