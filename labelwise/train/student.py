"""A student: one pipeline that learns from raw texts what a teacher, such as a committee, thinks of them.

Where a label isn't known, be it in a raw text or in one of train, the teacher's probabilities of the tags are soft
targets; gold is learned as always. Both are written to partitions of their own, which are read like any others.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config

from labelwise.common.errors import InputError
from labelwise.common.files import beside, check_replaceable, remove, staged_together
from labelwise.common.wording import counted
from labelwise.corpus.annotation import Annotation, Coverage, annotate
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.manifest import SPLITS, partitions_of, pinned, read_manifest, read_split
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.same_tokens import check_tokens
from labelwise.corpus.seen_texts import digest, digests_of
from labelwise.corpus.streaming import forgetting, take_batch, texts_at_a_time
from labelwise.corpus.tokenizing import tokenize
from labelwise.recognizer.per_label import CERTAIN, OUT, PerLabelRecognizer
from labelwise.sources.raw_texts import find_pieces, read_piece
from labelwise.train.pipeline import read_settings
from labelwise.train.recipe import Recipe
from labelwise.train.run import Trained, train_pipeline
from labelwise.train.tidy import rewrite

LINES = 500  # of JSONL, that are found as one piece
PART = 256  # texts of a partition


class RawTexts:
    """Raw texts that aren't in a corpus, each once, at most as many as train has: those with the least digests.

    So test stays what no pipeline has seen, and gold isn't lost among guesses. Eight bytes of each text are held.
    """

    def __init__(self, raw: Path, corpus: Path) -> None:
        """Choose among the texts of a file or folder; see `raw_texts`.

        RAISES (InputError): it isn't there, or can't be read.
        """
        self.raw = raw
        found = np.fromiter((digest(text) for text in self._read()), np.uint64)
        new = np.setdiff1d(found, digests_of(corpus, SPLITS))  # sorted, each once
        self.chosen = new[: read_split(corpus / "train")["texts"]]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.chosen)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts, in the order of the files."""
        left = set(self.chosen.tolist())
        for text in self._read():
            if (number := digest(text)) in left:
                left.remove(number)
                yield text

    def _read(self) -> Iterator[str]:
        for piece in find_pieces([self.raw], LINES):
            yield from (found.text for found in read_piece(piece) if found.text)


def train_student(
    recipe: Recipe,
    out: Path,
    curve: Path,
    *,
    teacher: Path,
    raw: Path,
    tell: Callable[[str], Any] = lambda message: None,
) -> Trained | None:
    """Train a pipeline on train, and on what a teacher thinks of raw texts.

    out, curve (Path): the folder for the pipeline, and a TSV file for its scores over time.
    teacher (Path): a pipeline with a head for each label of the corpus.
    raw (Path): file or folder of texts that nobody has annotated.
    tell (Callable): is told how many texts there are.
    RAISES (InputError): the teacher lacks a label, no raw text can be used, or what `train_pipeline` raises.
    """
    check_replaceable(out, ("meta.json", "config.cfg"), "pipeline")
    folder = beside(out.absolute(), "taught")
    with pinned(recipe.corpus), staged_together(out, curve, folders=[out]) as (made, made_curve):
        nlp = load_pipeline(teacher)
        ner = nlp.get_pipe("ner") if nlp.has_pipe("ner") else None
        known = ner.labels if isinstance(ner, PerLabelRecognizer) else ()
        if lacking := sorted({*read_manifest(recipe.corpus)["labels"]}.difference(known)):
            raise InputError(f"{teacher}: it has no head for {', '.join(lacking)}; weasel run train-cpu, per-label")
        check_tokens(nlp, recipe.corpus / "train", f"train {teacher} on {recipe.corpus} first")
        texts = RawTexts(raw, recipe.corpus)
        if not len(texts):
            raise InputError(f"{raw}: no new text that can be used; put .txt or JSONL files there")
        tell(f"Learning what {teacher} thinks of {counted(len(texts), 'text')} of {raw}")
        folder.mkdir(parents=True, exist_ok=True)
        coverage = read_settings(recipe)["corpora"]["train"]["coverage"]
        write_taught(nlp, recipe.corpus, texts, folder / "train", coverage)
        # It reads what is made anew each time, so that a checkpoint would be of another training.
        overrides = {**recipe.overrides, "corpora.train.path": str(folder / "train")}
        student = folder / "student"
        trained = train_pipeline(replace(recipe, resume=False, overrides=overrides), student, folder / "curve.tsv")
        config = load_config(student / "config.cfg", interpolate=False)
        config["corpora"]["train"]["path"] = "${paths.corpus}/train"
        config["paths"]["curve"] = str(curve)
        rewrite(student / "config.cfg", config.to_str())
        shutil.move(student, made)
        shutil.move(folder / "curve.tsv", made_curve)
    remove(folder)
    return trained


def write_taught(teacher: Language, corpus: Path, texts: RawTexts, out: Path, coverage: Coverage = "by-label") -> None:
    """Write train and raw texts to partitions, mixed, with what a teacher thinks of labels that aren't known.

    out (Path): a folder that isn't there.
    coverage (str): what becomes of texts of train that aren't complete; only "by-label" leaves anything unknown there.
    """
    out.mkdir()
    stored = (doc for file in partitions_of(corpus, "train") for doc in read_stored_docs(file))
    raw, train = iter(texts), read_split(corpus / "train")["texts"]
    parts = ceil((train + len(texts)) / PART)
    each, each_raw = ceil(train / parts), ceil(len(texts) / parts)
    for number in range(parts):
        items: Iterator[StoredDoc | str] = chain(islice(stored, each), islice(raw, each_raw))
        writer = DocWriter()
        while True:
            with forgetting(teacher):
                batch = take_batch(items, texts_at_a_time(teacher), words_of)
                if not batch:
                    break
                for doc in teach(teacher, batch, coverage):
                    writer.add(doc)
        writer.write(out / f"{number:06d}.spacy")


def words_of(item: StoredDoc | str) -> int:
    """Tell roughly how many words a text has."""
    return len(item) // 5 if isinstance(item, str) else len(item)


def teach(teacher: Language, items: Sequence[StoredDoc | str], coverage: Coverage) -> Iterator[Doc]:
    """Make gold Docs of texts, raw ones without gold, and say in each what the teacher thinks of unknown labels."""
    component: Any = teacher.get_pipe("ner")
    nothing = Annotation([], [], dict.fromkeys(component.labels, "none"))
    read = [tokenize(teacher, item if isinstance(item, str) else item.text) for item in items]
    with teacher.select_pipes(disable="ner"):
        read = list(teacher.pipe(read))
    tags = np.rint(np.exp(component.log_probabilities(read)) * CERTAIN).astype(np.uint8)
    ends = np.cumsum([len(doc) for doc in read])[:-1]
    for item, doc, found in zip(items, read, np.split(tags, ends), strict=True):
        gold, known = (doc, nothing) if isinstance(item, str) else (item.to_doc(teacher.vocab), item.annotation)
        is_asked = known.uncovered and (known is nothing or coverage == "by-label")
        by_label = {label: found[:, number] for number, label in enumerate(component.labels)}
        soft = {label: by_label[label].tobytes() for label in known.uncovered if by_label[label][:, OUT + 1 :].any()}
        annotate(gold, msgspec.structs.replace(known, soft=soft if is_asked else None))
        yield gold
