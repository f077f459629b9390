"""Name unsupported formats, each with its conversion."""

import re
from collections.abc import Iterable
from typing import NamedTuple

HEAD = 2000  # bytes that show the format of a file
BOM = rb"(?:\xef\xbb\xbf)?"
XML = rb"(?:<\?xml[^>]*>)?\s*(?:<!DOCTYPE[^>]*>)?\s*"
ROWS = "write each text with its `entities` as a row of JSONL"
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".7z", ".rar")
BCONV = "convert it to brat with the Python library bconv"


class Foreign(NamedTuple):
    """An unsupported format: a sentence with its name and remedy, and signs of it.

    keys (tuple[str, ...]): all are in its JSON objects, or in nested ones.
    begins (bytes): pattern of its files' first bytes.
    ends (tuple[str, ...]): lower-case ends of its files' names.
    """

    sentence: str
    keys: tuple[str, ...] = ()
    begins: bytes = b""
    ends: tuple[str, ...] = ()


# The first one that fits counts.
FOREIGN = (
    # Tools
    Foreign(
        "this is ner-annotator's; write its `annotations` alone to a file: jq .annotations", ("classes", "annotations")
    ),
    Foreign(
        "this is a list of Python's; write it as JSON: json.dump(LIST, file)", begins=rb"\s*(?:\w+\s*=\s*)?\[\s*\("
    ),
    Foreign("this is spaCy 2's training JSON; convert it to .spacy with `python -m spacy convert`", ("paragraphs",)),
    Foreign("this is UIMA's CAS; export WebAnno TSV 3 instead", ("%FEATURE_STRUCTURES",), XML + b"<xmi:XMI", (".xmi",)),
    Foreign(f"this is BioC; {BCONV}", ("passages", "infons"), XML + b"<collection>"),
    Foreign(f"this is PubTator; {BCONV}", begins=rb"\s*[0-9]+\|t\|"),
    Foreign(f"this is GATE's; {ROWS}", begins=XML + rb"(?:<!--.*?-->\s*)?<GateDocument"),
    Foreign(f"these are Azure's labels, without texts; {ROWS}", ("projectFileVersion", "assets")),
    Foreign(f"this is tagtog's ann.json, without a text; {ROWS}", ("annotatable", "anncomplete")),
    Foreign(
        "this is Rasa's; write its examples alone to a file: jq .rasa_nlu_data.common_examples", ("rasa_nlu_data",)
    ),
    Foreign(
        "this is LightTag's; write each example's `content` as `text`, and its `annotations` as `entities`: jq "
        "'.examples | map({text: .content, entities: .annotations})'",
        ("examples", "content", "annotations"),
    ),
    Foreign(
        "this is UBIAI's; write each `document` as `text`, and its `tokens` as `entities`: jq 'map({text: .document, "
        "entities: .tokens})'",
        ("document", "entityLabel"),
    ),
    Foreign(
        "this is Label Studio's table, whose spans are JSON in a cell; export JSON instead",
        begins=rb"(?=[^\n{]*\bannotation_id\b)[^\n{]*\bannotator\b",
    ),
    Foreign(f"this is a pipeline's output, without its text; {ROWS}", ("entity_group", "word")),
    Foreign(f"this is a pipeline's output, without its text; {ROWS}", ("entity", "score", "word")),
    # Other content, or other offsets
    Foreign("it has `pages`; write the text of each as a separate row", ("pages",)),
    Foreign("it marks audio, in seconds; annotate the transcript", ("audio_spans",)),
    Foreign("it marks an image, by points; annotate the text of the image", ("image", "spans", "points")),
    Foreign("its spans count the tokens of `sentences`; write texts with offsets in characters", ("sentences", "ner")),
    Foreign(
        "its spans count `tokens`; write `tokens` with `ner_tags`, or offsets in characters", ("tokens", "entities")
    ),
    # Files of any tool
    Foreign(
        "this is a sheet; save it as .tsv, a token and its tag in a line, or as .jsonl",
        ends=(".csv", ".xlsx", ".xls", ".ods"),
    ),
    Foreign("this is a database; declare it as `db:`, with the dataset's name as `name:`", begins=b"SQLite format 3\0"),
    Foreign("this is an archive; unpack it, and delete it", begins=b"PK\3\4", ends=ARCHIVES),
    Foreign(
        "this is compressed; decompress it, or write JSONL and compress that as .jsonl.gz",
        begins=rb"\x1f\x8b|\x28\xb5\x2f\xfd",  # gzip, zstd
        ends=(".gz", ".bz2", ".xz", ".zst"),
    ),
    Foreign("this is UTF-16; save it as UTF-8", begins=b"\xff\xfe|\xfe\xff"),
    Foreign(f"this is XML; {ROWS}", begins=rb"<\?xml"),
    Foreign("no format has this suffix; if its lines are tokens with tags, rename it to .conll", ends=(".txt",)),
)


def name_keys(keys: Iterable[str]) -> str:
    """Name the format with objects of these keys, with the remedy; "" if unknown."""
    own_keys = {*keys}
    return next((foreign.sentence for foreign in FOREIGN if foreign.keys and own_keys.issuperset(foreign.keys)), "")


def name_file(begin: bytes, name: str = "") -> str:
    """Name a file's format by its first bytes or its name, with the remedy; "" if unknown."""
    for foreign in FOREIGN:
        begins = foreign.begins and re.match(BOM + b"(?:" + foreign.begins + b")", begin, re.DOTALL)
        if begins or (foreign.ends and name.lower().endswith(foreign.ends)):
            return foreign.sentence
    return ""
