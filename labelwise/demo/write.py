"""Write the demo corpus as files: a brat folder, Prodigy data sets, or both, each with half of the labels."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from labelwise.corpus.tasks import DATASETS, input_hash, task_hash
from labelwise.demo.corpus import DemoDoc, Span, add_noise, count_words, make_doc
from labelwise.demo.grammar import LABELS
from labelwise.errors import InputError
from labelwise.files import check_replaceable, check_unchanged, list_digests, staged
from labelwise.parallel import Progress, no_progress

if TYPE_CHECKING:
    from spacy.tokens import Doc

DemoFormat = Literal["brat", "prodigy", "both"]
ANNOTATORS = ("alice", "bob", "carol", "dan")
MARK = ".demo.json"  # the digests of the files of a demo corpus


def make_demo(
    out: Path,
    *,
    format: DemoFormat = "brat",
    docs: int = 400,
    labels: int = len(LABELS),
    words: int | None = None,
    seed: int = 0,
    noise: float = 0.0,
    progress: Progress = no_progress,
) -> Counter[str]:
    """Write a demo corpus.

    labels (int): how many labels to annotate, the first of `labelwise.demo.grammar.LABELS`.
    words (int | None): about how many in each document; None for 100 to 300.
    noise (float): the share of tags that are wrong; see `corpus.add_noise`.
    RETURNS (Counter[str]): "documents", "words", "spans" and "discontinuous" made; not all of them fit Prodigy.
    RAISES (InputError): an argument is out of range, or something other than a demo corpus is in the folder.
    """
    if not 1 <= labels <= len(LABELS):
        raise InputError(f"--labels {labels}: must be 1 to {len(LABELS)}")
    if docs < 1:
        raise InputError(f"--docs {docs}: must be 1 or more")
    if not 0 <= noise <= 1:
        raise InputError(f"--noise {noise}: must be 0 to 1")
    if words is not None and words < 1:
        raise InputError(f"--words {words}: must be 1 or more")
    chosen = LABELS[:labels]
    counts: Counter[str] = Counter()

    def make_docs() -> Iterator[DemoDoc]:
        """Make the documents, and count what is in them."""
        for index in progress(range(docs), "make"):
            doc = make_doc(index, seed=seed, labels=chosen, words=words)
            if noise:
                doc = add_noise(doc, noise, seed=seed, labels=chosen)
            counts["documents"] += 1
            counts["words"] += count_words(doc.text)
            counts["spans"] += len(doc.spans)
            counts["discontinuous"] += len(doc.discontinuous)
            yield doc

    write_docs(make_docs(), chosen, out, format)
    return counts


def write_docs(docs: Iterable[DemoDoc], labels: Sequence[str], out: Path, format: DemoFormat) -> None:
    """Write documents to a folder: OUT, or OUT/brat and OUT/prodigy, of which each has every second label.

    RAISES (InputError): something else is in the folder, or a file that somebody changed or put there.
    """
    check_replaceable(out, (MARK,), "demo corpus")
    check_unchanged(out, MARK)
    with staged(out, folder=True) as folder, ExitStack() as stack:
        folder.mkdir()
        brat, prodigy = (folder, folder) if format != "both" else (folder / "brat", folder / "prodigy")
        writers = []
        if format != "prodigy":
            writers.append(brat_writer(brat, labels if format == "brat" else labels[::2]))
        if format != "brat":
            writers.append(prodigy_writer(prodigy, labels if format == "prodigy" else labels[1::2], stack))
        for doc in docs:
            for write in writers:
                write(doc)
        stack.close()
        (folder / MARK).write_text(json.dumps({"files": list_digests(folder)}))


def brat_writer(folder: Path, labels: Iterable[str]) -> Callable[[DemoDoc], None]:
    """Make what writes a document as DOMAIN/doc-00000.txt and .ann; each discontinuous span has a note."""
    folder.mkdir(exist_ok=True)
    labels = frozenset(labels)

    def write(doc: DemoDoc) -> None:
        """Write a document."""
        (folder / doc.path).parent.mkdir(exist_ok=True)
        (folder / doc.path).write_text(doc.text, encoding="utf-8", newline="")
        (folder / doc.path).with_suffix(".ann").write_text(_brat_lines(doc, labels), encoding="utf-8", newline="")

    return write


def _brat_lines(doc: DemoDoc, labels: Set[str]) -> str:
    mentions = sorted([([(start, end)], label) for start, end, label in doc.spans] + doc.discontinuous)
    mentions = [(fragments, label) for fragments, label in mentions if label in labels]
    lines: list[str] = []
    notes: list[str] = []
    for number, (fragments, label) in enumerate(mentions, 1):
        offsets = ";".join(f"{start} {end}" for start, end in fragments)
        quoted = " ".join(doc.text[start:end] for start, end in fragments)
        lines.append(f"T{number}\t{label} {offsets}\t{quoted}\n")
        if len(fragments) > 1:
            notes.append(f"#{len(notes) + 1}\tAnnotatorNotes T{number}\tshares its last word with the next\n")
    return "".join(lines + notes)


def prodigy_writer(folder: Path, labels: Sequence[str], stack: ExitStack) -> Callable[[DemoDoc], None]:
    """Make what writes a document as annotating by label in Prodigy does: as a task of each LABEL.jsonl.

    Prodigy can't mark a discontinuous span, nor one that isn't made of whole tokens: they are left out.

    stack (ExitStack): closes the files.
    """
    folder.mkdir(exist_ok=True)
    datasets = [
        {"name": _name(label), "path": f"{label}.jsonl", "labels": [label], "kind": "complete", "split": "auto"}
        for label in labels
    ]
    declared = yaml.safe_dump(datasets, sort_keys=False, default_flow_style=None)
    (folder / DATASETS).write_text(declared, encoding="utf-8")
    files = {label: stack.enter_context((folder / f"{label}.jsonl").open("wb")) for label in labels}
    if not files:
        return lambda doc: None
    import spacy  # takes seconds, which the brat corpus is made without

    nlp = spacy.blank("en")
    numbers = count()

    def write(doc: DemoDoc) -> None:
        """Write a document."""
        number = next(numbers)
        with nlp.memory_zone():  # or the vocabulary would grow with every name
            head, spans = _prodigy_task(nlp.make_doc(doc.text), doc.spans)
        for shift, (label, file) in enumerate(files.items()):
            session = f"{_name(label)}-{ANNOTATORS[(number + shift) % len(ANNOTATORS)]}"
            tail = {
                "spans": [span for span in spans if span["label"] == label],
                "answer": "accept",
                "_timestamp": 1_700_000_000 + number,
                "_annotator_id": session,
                "_session_id": session,
            }
            file.write(head + b"," + _dump(tail)[1:] + b"\n")

    return write


def _name(label: str) -> str:
    return label.lower().replace("_", "-")


def _prodigy_task(doc: "Doc", spans: list[Span]) -> tuple[bytes, list[dict[str, Any]]]:
    """Return what the tasks of all labels share, as JSON without its last brace, and the spans to distribute."""
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
