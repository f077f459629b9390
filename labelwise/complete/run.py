"""Complete the texts in train: train a per-label pipeline, and fill what isn't known with what it finds.

spaCy's ner makes one decision per token over all labels, so it can't learn from a text that is annotated for some of
them only. A pipeline with a head for each label can. It finds the others' spans in train, never in dev or test, and the
ner is trained on gold and on these.

What isn't filled in is counted, and taken for no entity: labels that no text is complete for, as nothing but single
spans taught them, and labels that are found far more or less often than where they are known (see `common.uncovered`).
A text that is complete for no label stays as it is.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from labelwise.common.outputs import check_replaceable, real_path, staged, workspace
from labelwise.common.uncovered import Rate, Rates, implausible
from labelwise.complete.fill import Candidate, fill
from labelwise.corpus.docbin_reader import StoredDoc, merged_data, read_stored_docs
from labelwise.corpus.docbin_writer import encode_docs, write_docs
from labelwise.corpus.manifest import MANIFEST, find_partitions, read_manifest
from labelwise.corpus.streaming import forgetting, take_batch
from labelwise.recognizer.per_label import SPANS_KEY
from labelwise.train.completed import BOOKS, TEACHER, is_partial
from labelwise.train.pipeline import Recognizer
from labelwise.train.run import train

TRAIN = "train"


class Completion(msgspec.Struct):
    """What completion did.

    skipped (str): why there was nothing to do; all else is empty then.
    corpus (str): SHA-256 of the corpus's manifest.
    texts (dict[str, int]): of train: "complete" already, "filled", or "complete for no label".
    spans (dict[str, dict[str, int]]): for each label, what became of the spans that were found where it isn't known;
        see `fill.Filled`.
    outside (dict[str, str]): labels that weren't filled in anywhere, and why.
    rates (list[Rate]): how often labels were found where nobody looked.
    partitions (dict[str, str]): SHA-256 of each `.spacy` file, by its path.
    """

    skipped: str = ""
    corpus: str = ""
    texts: dict[str, int] = {}
    spans: dict[str, dict[str, int]] = {}
    outside: dict[str, str] = {}
    rates: list[Rate] = []
    partitions: dict[str, str] = {}


def complete(config: Path, corpus: Path, out: Path, *, recognizer: Recognizer = "ner", **options: Any) -> Completion:
    """Complete the train split of a corpus; memory doesn't grow with the number of texts.

    out (Path): the folder for the completed split, the pipeline that completed it, and the books.
    recognizer (str): what is to be trained afterwards; only spaCy's "ner" needs complete texts.
    options (Any): those of `train.run.train`, for the per-label pipeline.
    RAISES (InputError): `out` has something other than a completion; what `train` raises.
    """
    check_replaceable(out, (BOOKS,), "completion")
    out = real_path(out)  # the pipeline is made beside it, and moved there
    manifest = read_manifest(corpus)
    skipped = why_not(recognizer, corpus, manifest["settings"]["policies"]["coverage"])
    with staged(out, folder=True) as result, workspace(out.with_name(f"{out.name}.parts")) as folder:
        folder.mkdir()
        (result / TRAIN).mkdir(parents=True)
        completion = Completion(skipped=skipped)
        if not skipped:
            teacher = out.with_name(f"{out.name}.{TEACHER}")
            curve = Path(os.path.relpath(folder / "curve.tsv"))  # the pipeline's config says where it was
            train(config, corpus, teacher, curve, recognizer="per-label", **options)
            completion = fill_split(spacy.load(teacher), corpus, result / TRAIN, manifest["labels"])
            teacher.rename(result / TEACHER)
        completion.corpus = hashlib.sha256((corpus / MANIFEST).read_bytes()).hexdigest()
        content = json.dumps(msgspec.to_builtins(completion), indent=2, ensure_ascii=False)
        (result / BOOKS).write_text(content + "\n", encoding="utf8")
    return completion


def why_not(recognizer: Recognizer, corpus: Path, coverage: str) -> str:
    """Say why there is nothing to complete; an empty string if there is something."""
    if recognizer != "ner":
        return f"recognizer {recognizer} learns from texts as they are annotated"
    if coverage != "by-label":
        return f"coverage is {coverage}"
    return "" if is_partial(corpus / TRAIN) else "all texts in train are complete for all labels"


def fill_split(nlp: Language, corpus: Path, out: Path, labels: Sequence[str]) -> Completion:
    """Fill the texts of train, partition by partition, and write them.

    nlp (Language): the per-label pipeline.
    out (Path): a folder for the `.spacy` files.
    """
    files = find_partitions(corpus / TRAIN)
    rates = Rates()
    known: set[str] = set()
    with TemporaryDirectory(dir=out.parent) as folder:
        for file in files:
            found = []
            for doc, spans in find_spans(nlp, file):
                merged = merged_data(doc)
                unknown = [span for span in spans if span.label in merged["uncovered"]]
                found.append(unknown)
                known.update(set(labels) - set(merged["uncovered"]))
                names = [span.label for span in unknown]
                rates.add_unknown(doc.text, merged["uncovered"], merged.get("datasets", []), names)
            (Path(folder) / file.name).write_bytes(msgspec.msgpack.encode(found))
        _add_dev(rates, nlp, corpus / "dev", labels)
        completion = Completion(rates=rates.rates())
        completion.outside = {label: "no text in train is complete for it" for label in labels if label not in known}
        unlikely = {name: {rate.label for rate in rows} for name, rows in implausible(completion.rates).items()}
        for file in files:
            found = msgspec.msgpack.decode((Path(folder) / file.name).read_bytes(), type=list[list[Candidate]])
            vocab = Vocab()
            docs = [
                _filled(doc, spans, labels, unlikely, completion, vocab)
                for doc, spans in zip(read_stored_docs(file), found, strict=True)
            ]
            write_docs([encode_docs(docs)], out / file.name)
            completion.partitions[f"{TRAIN}/{file.name}"] = hashlib.sha256((out / file.name).read_bytes()).hexdigest()
    return completion


def find_spans(nlp: Language, file: Path) -> Iterator[tuple[StoredDoc, list[Candidate]]]:
    """Yield each text of a partition with what a per-label pipeline finds in it."""
    docs = read_stored_docs(file)
    while True:
        with forgetting(nlp):
            batch = take_batch(docs, nlp.batch_size, len)
            if not batch:
                return
            for stored, doc in zip(batch, nlp.pipe([nlp.make_doc(stored.text) for stored in batch]), strict=True):
                spans = doc.spans[SPANS_KEY]
                scores = spans.attrs["scores"].tolist()
                yield (
                    stored,
                    [Candidate(span.start, span.end, span.label_, p) for span, p in zip(spans, scores, strict=True)],
                )


def _add_dev(rates: Rates, nlp: Language, dev: Path, labels: Sequence[str]) -> None:
    """Count how often labels are found, and are gold, in texts that the pipeline wasn't trained on."""
    for file in find_partitions(dev):
        for doc, spans in find_spans(nlp, file):
            merged = merged_data(doc)
            covered = [label for label in labels if label not in merged["uncovered"]]
            rates.add_known(
                doc.text, covered, [span.label for span in spans], [label for _, _, label, _ in merged["gold"]]
            )


def _filled(
    stored: StoredDoc,
    found: Sequence[Candidate],
    labels: Sequence[str],
    unlikely: Mapping[str, set[str]],
    completion: Completion,
    vocab: Vocab,
) -> Doc:
    """Fill a text, if something of it is known and something isn't, and count what became of it."""
    merged = merged_data(stored)
    state = "filled" if merged["uncovered"] else "complete"
    if len(merged["uncovered"]) == len(labels):
        state = "complete for no label"
    completion.texts[state] = completion.texts.get(state, 0) + 1
    if state != "filled":
        return stored.to_doc(vocab)
    excluded = set(completion.outside).union(*(unlikely.get(name, ()) for name in merged.get("datasets", ())))
    doc, outcomes = fill(stored, found, excluded, vocab)
    for span, outcome in zip(found, outcomes, strict=True):
        counts = completion.spans.setdefault(span.label, {})
        counts[outcome] = counts.get(outcome, 0) + 1
    return doc
