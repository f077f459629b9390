"""Write a demo corpus: English-looking texts of nine domains with up to twenty labels, every byte decided by a seed.

The corpus is easy to get and hard to do perfectly: the same string is a person, a place, a company, a month or nothing;
who is a judge, a doctor or just a person, and what is a dose, a concentration or only a weight, is for the sentence to
say, and now and then it doesn't; most names are put together from parts, so unseen texts have unseen names.

1. A document belongs to one domain and is made by the grammar below from `random.Random(f"{seed}/{index}")` alone.
2. The slots of its templates are filled, rule by rule; see `demo_grammar` for what they mean.
"""

import json
import re
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random
from string import Formatter
from typing import Any, NamedTuple

import spacy
import yaml
from spacy.tokens import Doc

from labelwise.demo_grammar import DOMAINS, LABELS, RULES
from labelwise.errors import InputError
from labelwise.output import staged
from labelwise.prodigy import input_hash, task_hash

ANNOTATORS = ("alice", "bob", "carol", "dan")

_alternatives = {name: rest.split("|") for name, rest in re.findall(r"(\w+) = (.*?)(?=  \w+ = |\n)", RULES)}
_sentences = {domain: block.strip().split("\n") for domain, block in DOMAINS.items()}

Span = tuple[int, int, str]
Discontinuous = tuple[list[tuple[int, int]], str]


class DemoDoc(NamedTuple):
    """One text with its entities; offsets are code points, `end` exclusive.

    path (str): path of the text relative to the root of the corpus, `DOMAIN/doc-00000.txt`.
    spans (list[Span]): (start, end, label), sorted, never overlapping each other.
    discontinuous (list[Discontinuous]): (fragments, label); the last fragment lies in one of the spans.
    """

    path: str
    text: str
    spans: list[Span]
    discontinuous: list[Discontinuous]


def make_doc(index: int, *, seed: int = 0, labels: Iterable[str] = LABELS, words: int | None = None) -> DemoDoc:
    """Make one document, always the same for the same arguments.

    index (int): number of the document, from 0.
    labels (Iterable[str]): what to annotate; the rest of LABELS occurs, but isn't annotated.
    words (int | None): about how many (`count_words`); None for 100 to 300.
    """
    labels = frozenset(labels)
    rng = Random(f"{seed}/{index}")
    domain = rng.choice(list(_sentences))
    target = rng.randint(100, 300) if words is None else words
    heading, *sentences = _sentences[domain]
    memory: dict[str, str] = {}
    text, marks = "", []
    count, template, separator = 0, heading, "\n"
    while count < target:
        sentence, found = _expand(template, rng, memory)
        marks += [(start + len(text), end + len(text), label) for start, end, label in found]
        text += sentence[0].upper() + sentence[1:] + separator
        count += count_words(sentence)
        template, separator = rng.choice([other for other in sentences if other != template]), rng.choice("    \n")
    spans: list[Span] = []
    discontinuous: list[Discontinuous] = []
    for (start, end, label), (_, next_end, _) in zip(marks, [*marks[1:], *marks[-1:]], strict=True):
        if label in labels:
            spans.append((start, end, label))
        elif label[:-1] in labels:
            last_word = text.rindex(" ", 0, next_end) + 1
            discontinuous.append(([(start, end), (last_word, next_end)], label[:-1]))
    return DemoDoc(f"{domain}/doc-{index:05}.txt", text[:-1] + "\n", spans, discontinuous)


def count_words(text: str) -> int:
    """Count as spaCy does, punctuation too, but faster and not exactly: "Zoë paid $45." has five words."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def _expand(template: str, rng: Random, memory: dict[str, str]) -> tuple[str, list[Span]]:
    """Fill a template's slots; return the text with the marked spans in it."""
    text, marks = "", []
    for literal, name, inner in _parse(template):
        text += literal
        if not name:
            continue
        if inner:
            piece, found = _expand(inner, rng, memory)
            found = [(0, len(piece), name)]
        elif name in memory:
            piece, found = memory[name], []
        else:
            piece, found = _expand(rng.choice(_alternatives[name]), rng, memory)
            if name.startswith("the_"):
                memory[name] = piece
        marks += [(start + len(text), end + len(text), label) for start, end, label in found]
        text += piece
    return text, marks


@cache
def _parse(template: str) -> list[tuple[str, str, str]]:
    """Split a template into (literal, rule or label of the slot after it, template in the slot)."""
    return [(literal, name or "", inner or "") for literal, name, inner, _ in Formatter().parse(template)]


def write_brat(docs: Iterable[DemoDoc], out: Path) -> None:
    """Write a brat corpus, OUT/DOMAIN/doc-00000.txt and .ann; a note tells of each discontinuous span.

    RAISES (InputError): something else lies in the folder.
    """
    _check_replaceable(out, set(DOMAINS))
    with staged(out) as folder:
        for domain in DOMAINS:
            (folder / domain).mkdir(parents=True)
        for doc in docs:
            (folder / doc.path).write_text(doc.text, encoding="utf-8", newline="")
            (folder / doc.path).with_suffix(".ann").write_text(_brat_lines(doc), encoding="utf-8", newline="")


def _brat_lines(doc: DemoDoc) -> str:
    mentions = sorted([([(start, end)], label) for start, end, label in doc.spans] + doc.discontinuous)
    lines: list[str] = []
    notes: list[str] = []
    for number, (fragments, label) in enumerate(mentions, 1):
        offsets = ";".join(f"{start} {end}" for start, end in fragments)
        quoted = " ".join(doc.text[start:end] for start, end in fragments)
        lines.append(f"T{number}\t{label} {offsets}\t{quoted}\n")
        if len(fragments) > 1:
            notes.append(f"#{len(notes) + 1}\tAnnotatorNotes T{number}\tshares its last word with the next\n")
    return "".join(lines + notes)


def write_prodigy(docs: Iterable[DemoDoc], labels: Iterable[str], out: Path) -> None:
    """Write what annotating label by label in Prodigy gives: OUT/datasets.yml and, with a task a text, OUT/LABEL.jsonl.

    Prodigy can't mark a discontinuous span, nor one that isn't made of whole tokens: they are left out.

    RAISES (InputError): something else lies in the folder.
    """
    labels = list(labels)
    names = {label: label.lower().replace("_", "-") for label in labels}
    datasets = [
        {"name": names[label], "path": f"{label}.jsonl", "labels": [label], "kind": "complete", "split": "auto"}
        for label in labels
    ]
    _check_replaceable(out, {f"{label}.jsonl" for label in LABELS} | {"datasets.yml"})
    nlp = spacy.blank("en")
    with staged(out) as folder, ExitStack() as stack:
        folder.mkdir()
        files = {label: stack.enter_context((folder / f"{label}.jsonl").open("wb")) for label in labels}
        for number, doc in enumerate(docs):
            with nlp.memory_zone():  # or the vocabulary would grow with every name
                head, spans = _prodigy_task(nlp.make_doc(doc.text), doc.spans)
            for shift, (label, file) in enumerate(files.items()):
                session = f"{names[label]}-{ANNOTATORS[(number + shift) % len(ANNOTATORS)]}"
                tail = {
                    "spans": [span for span in spans if span["label"] == label],
                    "answer": "accept",
                    "_timestamp": 1_700_000_000 + number,
                    "_annotator_id": session,
                    "_session_id": session,
                }
                file.write(head + b"," + _dump(tail)[1:] + b"\n")
        (folder / "datasets.yml").write_text(
            yaml.safe_dump(datasets, sort_keys=False, default_flow_style=None), encoding="utf-8"
        )


def _prodigy_task(doc: Doc, spans: list[Span]) -> tuple[bytes, list[dict[str, Any]]]:
    """Return what the tasks of all labels share, as JSON without its last brace, and the spans to deal out."""
    text_hash = input_hash(doc.text)
    task = {
        "text": doc.text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, []),  # of the question, in which nothing is marked yet
        "_is_binary": False,
        "tokens": [
            {"text": token.text, "start": token.idx, "end": token.idx + len(token), "id": token.i, "ws": ws}
            for token, ws in ((token, bool(token.whitespace_)) for token in doc)
        ],
        "_view_id": "ner_manual",
    }
    marked = [
        {"start": start, "end": end, "token_start": span.start, "token_end": span.end - 1, "label": label}
        for start, end, label in spans
        if (span := doc.char_span(start, end)) is not None
    ]
    return _dump(task)[:-1], marked


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _check_replaceable(out: Path, ours: set[str]) -> None:
    """Make sure that a folder which is about to be replaced is an earlier demo corpus."""
    for entry in sorted(out.iterdir()) if out.is_dir() else []:
        if entry.name not in ours:
            raise InputError(f"{out}: {entry.name!r} is no part of a demo corpus; choose another folder")
