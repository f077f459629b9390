"""Export a corpus, or predictions, to a folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from labelwise.common.errors import InputError
from labelwise.common.outputs import check_replaceable, staged
from labelwise.corpus.manifest import SPLITS, is_corpus
from labelwise.export.brat import write_brat
from labelwise.export.docs import ExportDoc, read_complete, read_corpus, read_labels, read_predicted
from labelwise.export.prodigy import write_by_label, write_texts, write_to_annotate, write_together

ExportFormat = Literal["brat", "prodigy", "prodigy-by-label", "texts"]
MARK = "export.json"


class Exported(msgspec.Struct):
    """What was exported.

    ordered_by (str): what decides which text comes first, where that matters.
    """

    format: str
    source: str
    texts: int
    spans: int
    ordered_by: str = ""


def export(
    source: Path, out: Path, format: ExportFormat, splits: Sequence[str] = SPLITS, *, annotated: Path | None = None
) -> Exported:
    """Export all accepted spans of a corpus, or what was predicted, to a folder, which is replaced as a whole.

    source (Path): the folder of a merged corpus, or a file of predictions.
    splits (Sequence[str]): those of the corpus.
    annotated (Path | None): a merged corpus; of predictions by label, what is complete there is left out.
    RAISES (InputError): the source is neither; `annotated` is no corpus, or says nothing about what is exported; `out`
        has something other than an export.
    """
    check_replaceable(out, (MARK,), "export")
    corpus = is_corpus(source)
    if not corpus and not source.is_file():
        raise InputError(f"{source}: neither a merged corpus nor a file of predictions")
    if annotated and (corpus or format != "prodigy-by-label"):
        raise InputError(
            "--annotated is for predictions that are exported with --format prodigy-by-label; leave it out"
        )
    complete = read_complete(annotated) if annotated else {}
    if unknown := [split for split in splits if split not in SPLITS]:
        raise InputError(f"--splits: there is no split {unknown[0]!r}; give some of {','.join(SPLITS)}")

    def read() -> Iterator[ExportDoc]:
        """Yield the texts."""
        for doc in read_corpus(source, splits) if corpus else read_predicted(source):
            known = complete.get(doc.key)
            yield doc._replace(unknown={k: v for k, v in doc.unknown.items() if k not in known}) if known else doc

    labels: set[str] = set(read_labels(source)) if corpus else set()
    texts, certain = 0, False
    for doc in read():
        texts += 1
        certain = certain or bool(doc.scores)
        if not corpus:
            labels |= {label for _, _, label in doc.spans} | set(doc.unknown)
    result = Exported(format, str(source), texts, 0)
    with staged(out, folder=True) as folder:
        folder.mkdir()
        if format == "brat":
            result.spans = write_brat(read(), folder)
        elif format == "prodigy":
            result.spans = write_together(read(), folder)
        elif format == "texts":
            write_texts(read(), folder)
        elif corpus:
            result.spans = write_by_label(read(), folder, sorted(labels))
        else:
            result.spans = write_to_annotate(read, folder, sorted(labels))
            result.ordered_by = "the least certain span first" if certain else "the most spans first"
        (folder / MARK).write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return result
