"""Name unsupported formats, each with its conversion."""

import re
from collections.abc import Iterable
from typing import NamedTuple

HEAD = 2000  # bytes that show the format of a file
BOM = rb"(?:\xef\xbb\xbf)?"
XML = rb"(?:<\?xml[^>]*>)?\s*(?:<!DOCTYPE[^>]*>)?\s*"
PYTHON = rb"(?:\s*(?:import|from|#)[^\n]*\n)*\s*(?:\w+\s*=\s*)?\[\s*\("
CAS = "this is UIMA's CAS"
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
    Foreign("this is a list of Python's; write it as JSON: json.dump(LIST, file)", begins=PYTHON),
    Foreign(f"this is SQuAD, questions with answers; {ROWS}", ("paragraphs", "qas")),
    Foreign("this is spaCy 2's training JSON; convert it to .spacy with `python -m spacy convert`", ("paragraphs",)),
    Foreign("these are Python's dicts; write each as JSON: json.dumps(ROW)", begins=rb"\s*\[?\s*\{'"),
    Foreign("this is Markdown around JSON; delete its lines of ```", begins=rb"\s*```"),
    Foreign(
        "its cells are lists of Python's; write rows of JSONL, with `tokens` and `ner_tags`",
        begins=rb"(?:[^\n]*\n)?[^\n]*\t\[['\"]",
    ),
    Foreign("these are patterns of an EntityRuler, without texts", ("label", "pattern")),
    Foreign(f"{CAS}; export WebAnno TSV 3 instead", ("%FEATURE_STRUCTURES",), XML + b"<xmi:XMI", (".xmi",)),
    Foreign(f"{CAS}; export WebAnno TSV 3 instead", ("_views", "_referenced_fss")),
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
    Foreign(f"this is Google AutoML's; {ROWS}", ("text_snippet", "text_extraction")),
    Foreign(f"this is Google Vertex AI's; {ROWS}", ("textContent", "textSegmentAnnotations")),
    Foreign(f"this is Kili's; {ROWS}", ("jsonResponse", "externalId")),
    Foreign(f"this is Labelbox's; {ROWS}", ("data_row", "projects")),
    Foreign(f"this is Datasaur's; {ROWS}", ("sentences", "sidS")),
    Foreign(f"this is Argilla's; {ROWS}", ("fields", "responses")),
    Foreign(f"this is DocRED's, by tokens; {ROWS}", ("vertexSet", "sents")),
    Foreign(f"this is BigBIO's; {ROWS}", ("passages", "document_id")),
    Foreign(f"this is a chat with a language model; {ROWS}", ("messages", "role")),
    Foreign(f"this is a chat with a language model; {ROWS}", ("conversations", "value")),
    Foreign(f"this is SageMaker's; {ROWS}", ("source", "startOffset")),
    Foreign(f"this is Dialogflow's; {ROWS}", ("userDefined", "alias")),
    Foreign(f"these are questions about labels (MRC); {ROWS}", ("context", "span_position")),
    Foreign("it compares two answers (ner.eval-ab), and annotates nothing", ("accept", "reject", "mapping")),
    Foreign("these are spaCy's Examples as dicts; write their `reference` to .spacy", ("doc_annotation",)),
    Foreign("this is a table of pandas'; write df.to_json(PATH, orient='records')", ("columns", "index", "data")),
    Foreign("these are rows of Hugging Face's server; download the Parquet file", ("row_idx", "row")),
    Foreign(f"this is OpenNLP's; {ROWS}", begins=rb"(?:[^\n]*\n){0,20}?[^\n]*<START:"),
    Foreign(f"this is Rasa's; {ROWS}", begins=rb"version:[^\n]*\s+nlu:"),
    Foreign(f"this is RDF, such as NIF; {ROWS}", ends=(".ttl", ".nt", ".rdf")),
    Foreign(
        "this is Arrow; write Parquet: in Python, datasets.Dataset.from_file(PATH).to_parquet(NEW)", ends=(".arrow",)
    ),
    Foreign("it has `pages`; write the text of each as a separate row", ("pages",)),
    Foreign("it marks audio, in seconds; annotate the transcript", ("audio_spans",)),
    Foreign("it marks an image, by points; annotate the text of the image", ("image", "spans", "points")),
    Foreign("its spans count the tokens of `sentences`; write texts with offsets in characters", ("sentences", "ner")),
    *(
        Foreign("its spans count `tokens`; write `tokens` with `ner_tags`, or offsets in characters", ("tokens", key))
        for key in ("entities", "spans")
    ),
    Foreign("its `tokens` aren't those of one text; write each text as a row", ("tokens", "ner_tags")),
    # Files of any tool
    Foreign(
        "a sheet; save it as .tsv (a token and its tag in a line) or .jsonl (a text with its `spans`: docs/data.md)",
        ends=(".csv", ".xlsx", ".xls", ".ods"),
    ),
    Foreign("this is a database; declare it as `db:`, with the dataset's name as `name:`", begins=b"SQLite format 3\0"),
    Foreign("this is an archive; unpack it, and delete it", begins=b"PK\3\4", ends=ARCHIVES),
    Foreign(
        "this is compressed; decompress it, or write JSONL and compress that as .jsonl.gz",
        begins=rb"\x1f\x8b|\x28\xb5\x2f\xfd",  # gzip, zstd
        ends=(".gz", ".bz2", ".xz", ".zst"),
    ),
    Foreign("this is UTF-16; save it as UTF-8", begins=rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){8}|(?:\0[^\0]){8}"),
    Foreign(f"this is XML; {ROWS}", begins=rb"<\?xml", ends=(".xml",)),
    Foreign(
        "no format has this suffix; if its rows are JSON, rename it to .jsonl; if tagged tokens, to .conll",
        ends=(".txt",),
    ),
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
