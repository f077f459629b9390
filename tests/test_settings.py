from typing import Annotated

import msgspec
import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.base.settings import decode_yaml, encode_yaml, read_section
from labelwise.merge.rules.settings import read_settings


class Pets(msgspec.Struct, frozen=True):
    name: str = "Tom"
    legs: Annotated[int, msgspec.Meta(ge=1)] = 4
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.name == "Rex":
            raise InputError("name: 'Rex': that is a dog")


@pytest.mark.parametrize(
    ("content", "pets"),
    [
        ("pets: {name: Kit, share: 1}", Pets("Kit", share=1.0)),
        ("pets:\nvars: {seed: 0}", Pets()),
        ("vars: {seed: 0}", Pets()),
        ("pets:\n  name:\n  legs: 3", Pets(legs=3)),
        ("pets: {name: no, legs: 010}", Pets("no", 10)),  # as YAML 1.2 has it, and DVC
        ("# nothing", Pets()),
    ],
)
def test_what_is_missing_has_its_default(tmp_path, content, pets):
    (tmp_path / "project.yml").write_text(content)
    assert read_section(tmp_path / "project.yml", "pets", Pets) == pets
    assert read_section(None, "pets", Pets) == Pets()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{leg: 3}", "pets: leg: 3: the section has no such key; its keys are name, legs, share"),
        ("{legs: many}", "pets: legs: 'many': Expected `int`, got `str`"),
        ("{legs: 0}", "pets: legs: 0: Expected `int` >= 1"),
        ("{name: 1.10}", "pets: name: 1.1: Expected `str`, got `float`; put it in quotes"),
        ("{name: Rex}", "pets: name: 'Rex': that is a dog"),
        ("[Tom]", "pets: ['Tom'] isn't a section; its keys are name, legs, share"),
        ("{", "project.yml: while parsing"),
    ],
)
def test_an_error_names_file_key_and_value_and_what_may_be_there(tmp_path, section, message):
    (tmp_path / "project.yml").write_text(f"pets: {section}")
    with pytest.raises(InputError) as error:
        read_section(tmp_path / "project.yml", "pets", Pets)
    assert str(error.value).startswith(f"{tmp_path}/{'' if 'project' in message else 'project.yml: '}{message}")


@pytest.mark.parametrize(
    "content",
    [
        b"a: 2020-13-45",
        b"\xff\xfe\x00",
        b"caf\xe9",
        b"a: &a [*a]",
        b"\t:",
        b"%YAML 9.9\n---\n[",
        b"a: !!python/object:os.system x",
        b"a: !!int x",
        b"? [a]\n: b",
    ],
)
def test_an_error_names_the_file_that_is_no_yaml(content):
    with pytest.raises(InputError, match=r"(?s)x\.yml: .*; fix it"):
        decode_yaml(content, list[str], "x.yml", "fix it")


def test_a_key_that_is_there_twice_is_an_error():
    content = b"- name: a\n  path: a.jsonl\n  labels: [A]\n  path: b.jsonl\n"
    with pytest.raises(InputError, match=r"x\.yml: line 4: 'path' is there twice; write it once; a remedy"):
        decode_yaml(content, list[dict], "x.yml", "a remedy")
    again = decode_yaml(b"a: &x {b: 1}\nc: *x\nd: {b: 2}\n", dict, "x.yml", "")
    assert again == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 2}}


def test_words_are_written_so_that_every_version_of_yaml_reads_them():
    words = ["NO", "on", "y", "~", "null", "=", "", "010", "0o7", "0x1f", "1e3", "1_0", "12:30", "2020-01-01", "a: b"]
    written = encode_yaml([{"labels": words, "name": "café"}])
    assert decode_yaml(written.encode(), list[dict], "x.yml", "") == yaml.safe_load(written)
    assert yaml.safe_load(written) == [{"labels": words, "name": "café"}]


def test_a_number_that_should_be_a_word_is_not_guessed():
    with pytest.raises(InputError, match=r"x\.yml: Expected `str`, got `int` - at `\$\[1\]`; put it in quotes; fix it"):
        decode_yaml(b"[NO, 1]", list[str], "x.yml", "fix it")
    written = b"[NO, 1, 010, 1.10, 2020-01-01, 1e3, .inf]"
    words = ["NO", "1", "010", "1.10", "2020-01-01", "1e3", ".inf"]
    assert decode_yaml(written, list[str], "x.yml", "fix it", words=True) == words


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("normalize: true", "merge.normalize: delete it"),
        ("normalize: false", "merge.normalize: delete it"),
        ("duplicates: error", "merge.duplicates: error: write latest or union"),
        ("conflicts: latest", "merge.conflicts: latest: write accept-wins or reject-wins"),
        ("overlap: error", "merge.overlap: error: write longest or first"),
        ("alignment: error", "merge.alignment: error: write drop, expand or contract"),
        ("\nreport:\n  ship_at: 0.8", "report.ship_at: write target_f1"),
        ("\nreport:\n  base: main", "report.base: write baseline"),
    ],
)
def test_a_removed_key_or_value_says_what_to_write_instead(tmp_path, line, remedy):
    (tmp_path / "project.yml").write_text(f"merge:\n  {line}\n")
    with pytest.raises(InputError, match=rf"project\.yml: labelwise no longer reads this key:\n  {remedy}"):
        read_settings(tmp_path / "project.yml")
