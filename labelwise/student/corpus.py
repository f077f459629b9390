"""Make the corpus of a student: a merged corpus's gold, and a teacher's predictions of raw texts.

1. The teacher predicts the raw texts, file by file, in the folder `predicted` beside the corpus (`predict_files`). A
   killed run resumes there.
2. Raw texts in the merged corpus, and leaks of its dev or test (`leaks`), are left out.
3. The other predictions are complete answers for the teacher's labels, and become Docs as in a merge. Train has these
   Docs and the gold, sorted by key; all else is the merged corpus's.

Memory holds a partition, and 8 bytes per text of the merged corpus, beside `leaks` and the units of dev and test.
"""

import hashlib
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from math import ceil
from operator import itemgetter
from pathlib import Path

import msgspec
import numpy as np

from labelwise.annotations import Span, Task
from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_replaceable, digest_folder, remove
from labelwise.base.parallel import Progress, no_progress
from labelwise.base.text import form_of, text_key
from labelwise.corpus.docbin_reader import StoredDoc, read_docs
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.manifest import (
    MANIFEST,
    RawTexts,
    SplitCounts,
    digest_partitions,
    read_manifest,
    unchanged,
    write_manifest,
)
from labelwise.corpus.pipeline import bounded_vocab, excluded_labels_of
from labelwise.corpus.seen_texts import digest, has_seen
from labelwise.datasets.declarations import DataSet
from labelwise.evaluate.predict import PART, Done, entity_labels, hold_pipeline
from labelwise.evaluate.predict_files import made_by, plan_jobs, predict_files
from labelwise.evaluate.predictions import FOLDER_MARK, PredictedDoc, encode_prediction, read_predictions
from labelwise.merge.buckets import range_of
from labelwise.merge.merge_data import TEXT_BYTES
from labelwise.merge.rules.answers import make_answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Unmarked
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.rules.to_doc import to_doc
from labelwise.sources.files import SourceFile, printable
from labelwise.sources.raw_texts import count_raw_texts, read_raw_texts
from labelwise.student.leaks import find_leaks, find_shared

SOURCE = SourceFile(Path(), "")  # of a teacher's answers, which no file has


def make_student_corpus(
    teacher: Path,
    inputs: Sequence[Path],
    corpus: Path,
    out: Path,
    *,
    workers: int = 1,
    gpu_id: int = -1,
    progress: Progress = no_progress,
) -> tuple[RawTexts, Counter[str]]:
    """Make the corpus of a student in a folder, replacing it.

    inputs (Sequence[Path]): files and folders of raw texts; see `raw_texts`.
    RETURNS (tuple): raw texts of the student; counts of unusable raw texts, by reason.
    RAISES (InputError): if the teacher knows no label of the corpus, or too few for its `coverage`, no raw text is
        left, or `predict_files` fails.
    """
    check_replaceable(out, (MANIFEST, "tokenizer.json"), "corpus")
    manifest, teacher_digest = read_manifest(corpus), digest_folder(teacher)
    use_gpu(gpu_id)
    nlp, settings = hold_pipeline(teacher.absolute(), teacher_digest), msgspec.convert(manifest.settings, Settings)
    known = entity_labels(nlp) - {*excluded_labels_of(nlp)}
    labels = [label for label in manifest.labels if label in known]
    if not labels or (settings.coverage != "by-label" and labels != manifest.labels):
        unknown = ", ".join(sorted({*manifest.labels} - known))
        raise InputError(f"{teacher}: it hasn't learned {unknown}; name another `teacher` in project.yml")
    predicted = out.with_name("predicted")
    mark = predicted / FOLDER_MARK
    if mark.is_file() and msgspec.json.decode(mark.read_bytes()) != made_by(teacher_digest):
        remove(predicted)
    problems, train = Counter[str](), manifest.splits["train"]
    texts = train.texts
    parts = predict_files(teacher, inputs, predicted, workers=workers, gpu_id=gpu_id)
    for done in progress(parts, "predict", count_raw_texts(inputs), Done.size):
        problems, texts = problems + done.problems, texts + done.texts
    # The folder may have predictions of raw texts that were deleted since.
    files = [predicted / job.name for job in plan_jobs(inputs)]
    with unchanged(corpus), atomic(out, folders=[out]) as [folder]:
        for name in ("dev", "test", "labels"):
            shutil.copytree(corpus / name, folder / name)
        shutil.copyfile(corpus / "tokenizer.json", folder / "tokenizer.json")
        (folder / "train").mkdir()
        scratch = folder.with_name("scratch")
        (scratch / "buckets").mkdir(parents=True)
        size = sum(file.stat().st_size for file in files)
        bits = (max(1, ceil(texts / settings.docs_per_partition), ceil(size / TEXT_BYTES)) - 1).bit_length()
        shared: dict[bytes, str] = {}
        if settings.split_by:
            units = {doc.annotation.unit for doc in read_docs(corpus, "dev", "test")}
            keys_of_shared = find_shared(read_raw_texts(inputs), settings.split_by, units)
            shared = dict.fromkeys(keys_of_shared, f"with the {settings.split_by} of a text of dev or test")
        left_out = scatter(files, corpus, settings.near_similarity, scratch, bits, shared)
        written, counts, keys = write_train(corpus, scratch / "buckets", bits, labels, folder / "train")
        if not counts["texts"]:
            reasons = ", ".join(f"{n:,} {why}" for why, n in left_out.items()) or "there are none"
            raise InputError(f"{', '.join(map(printable, inputs))}: no text is left ({reasons}); put others there")
        raw = RawTexts(
            teacher=teacher.name if teacher.is_absolute() else teacher.as_posix(),
            pipeline=teacher_digest,
            corpus=digest_partitions(manifest.partitions),
            labels=labels,
            texts=counts["texts"],
            words=counts["words"],
            left_out=dict(sorted((left_out + Counter({"twice among raw texts": counts["twice"]})).items())),
        )
        sizes = SplitCounts(train.texts + raw.texts, train.words + raw.words, keys)
        others = {name: digest for name, digest in manifest.partitions.items() if not name.startswith("train/")}
        whole = msgspec.structs.replace(
            manifest,
            settings=manifest.settings | {"raw": msgspec.to_builtins(raw)},
            splits=manifest.splits | {"train": sizes},
            partitions=dict(sorted((others | written).items())),
        )
        write_manifest(folder, whole)
    return raw, problems


def write_train(
    corpus: Path, buckets: Path, bits: int, taught: Sequence[str], folder: Path
) -> tuple[dict[str, str], Counter[str], str]:
    """Write train: a merged corpus's gold, and raw texts from files of predictions, one per partition.

    RETURNS (tuple): digest of each partition; counts of raw texts, their words, and repeated texts; and digest of all
        keys.
    """
    manifest, digest = read_manifest(corpus), hashlib.sha256()
    settings = msgspec.convert(manifest.settings, Settings)
    gold = groupby(read_docs(corpus, "train"), lambda doc: range_of(text_key(doc.text), bits))
    annotated, partitions, counts = next(gold, (-1, ())), dict[str, str](), Counter[str]()
    for number in range(1 << bits):
        docs: dict[bytes, StoredDoc] = {}
        if annotated[0] == number:
            docs = {text_key(doc.text): doc for doc in annotated[1]}
            annotated = next(gold, (-1, ()))
        file, name = buckets / f"{number}", f"part-{number:05d}.spacy"
        with bounded_vocab(load_tokenizer(settings).nlp):
            for doc in read_predictions(file) if file.is_file() else ():
                if (key := bytes.fromhex(doc.key)) in docs:
                    counts["twice"] += 1
                    continue
                docs[key] = answer(doc, taught, manifest.labels, settings)
                counts += Counter(texts=1, words=len(docs[key]))
            writer = DocWriter()
            for key, stored in sorted(docs.items(), key=itemgetter(0)):
                starts, ends = stored.offsets()
                writer.add(stored, starts.tolist(), ends.tolist())
                digest.update(key)
        if docs:
            partitions[f"train/{name}"] = writer.write(folder / name)
    return partitions, counts, digest.hexdigest()


def scatter(
    files: Sequence[Path], corpus: Path, similarity: float, scratch: Path, bits: int, shared: Mapping[bytes, str]
) -> Counter[str]:
    """Write the usable predictions to files by partition; return counts of the others by reason.

    scratch (Path): temporary folder; predictions go to its folder `buckets`.
    shared (Mapping): reasons to leave out texts, by key, besides those of `find_leaks`.
    """

    def held() -> Iterator[str]:
        return (doc.text for doc in read_docs(corpus, "dev", "test"))

    def collect(texts: Iterable[str]) -> np.ndarray:
        return np.unique(np.fromiter((digest(text_key(form_of(text)).hex()) for text in texts), np.uint64))

    def read() -> Iterator[PredictedDoc]:
        return chain.from_iterable(map(read_predictions, files))

    leaks = {**shared, **find_leaks(lambda: (doc.text for doc in read()), held, similarity, scratch)}
    known = {"in dev or test": collect(held()), "in train": collect(doc.text for doc in read_docs(corpus, "train"))}
    left_out: Counter[str] = Counter()
    docs = read()
    while batch := list(islice(docs, PART)):
        lines: defaultdict[int, list[bytes]] = defaultdict(list)
        for doc in batch:
            form = text_key(form_of(doc.text)).hex()
            where = next((name for name, seen in known.items() if has_seen(seen, form)), "")
            if why := where or leaks.get(bytes.fromhex(doc.key)):
                left_out[why] += 1
            else:
                lines[range_of(bytes.fromhex(doc.key), bits)].append(encode_prediction(doc) + b"\n")
        for number, lines_of_bucket in lines.items():
            with (scratch / "buckets" / f"{number}").open("ab") as file:
                file.writelines(lines_of_bucket)
    return left_out


def answer(doc: PredictedDoc, taught: Sequence[str], labels: Sequence[str], settings: Settings) -> StoredDoc:
    """Make a text's Doc, with its predictions as a complete answer for the teacher's labels."""
    predicted = [span[:3] for span in doc.found] or doc.predicted
    task = Task(1, doc.text, tuple(Span(*span) for span in predicted if span[2] in taught))
    merged = merge_text(doc.text, [make_answer(0, task, DataSet(name="raw", labels=tuple(taught)), SOURCE)], settings)
    unmarked: Unmarked = "outside" if len(taught) == len(labels) else "missing"
    return to_doc(load_tokenizer(settings), merged, labels, settings, unmarked).doc
