"""Export a corpus, predictions or tasks to a folder, by the table FORMATS."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_replaceable, check_unchanged, list_digests
from labelwise.corpus.manifest import SPLITS
from labelwise.export.brat import write_brat
from labelwise.export.doccano import write_doccano
from labelwise.export.label_studio import write_label_studio
from labelwise.export.originals import Originals
from labelwise.export.prodigy import write_binary, write_by_label, write_texts, write_together
from labelwise.export.review import DISAGREEMENTS, DROPPED, Reviewed, write_review
from labelwise.export.source import Exported, ExportSource, open_source
from labelwise.merge.rules.settings import Settings

ExportFormat = Literal["brat", "prodigy", "prodigy-by-label", "prodigy-binary", "label-studio", "doccano", "texts"]
MARK = "export.json"


# Each writes a source to a folder; `write_brat` takes the originals, too.
FORMATS: Mapping[ExportFormat, Callable[[ExportSource, Path], Exported]] = {
    "prodigy": write_together,
    "prodigy-by-label": write_by_label,
    "prodigy-binary": write_binary,
    "label-studio": write_label_studio,
    "doccano": write_doccano,
    "texts": write_texts,
}


def export(
    source: Path,
    out: Path,
    format: ExportFormat,
    splits: Sequence[str] = SPLITS,
    *,
    settings: Settings | None = None,
    originals: Originals | None = None,
) -> Exported:
    """Export all spans of a corpus, predictions, or tasks to a folder, replacing it.

    settings (Settings | None): settings of the tokenizer for Prodigy's `tokens`; None for the corpus's own, or the
        defaults.
    originals (Originals | None): brat documents of the source, whose other lines are exported, too.
    RAISES (InputError): if the source is none of these, an original is missing or has changed, or `out` has other or
        edited files.
    """
    _check(out, splits)
    opened = open_source(source, splits, settings, placed=format == "brat")
    with _replaced(out) as folder:
        done = (
            write_brat(opened, folder, originals or Originals())
            if format == "brat"
            else FORMATS[format](opened, folder)
        )
    if opened.predicted and not done.ordered_by:
        return done._replace(ordered_by=f"the most {'expected mistakes' if opened.certain else 'spans'} per word first")
    return done


def export_review(
    corpus: Path, out: Path, splits: Sequence[str] = SPLITS, *, dropped: bool = False, disagreements: bool = False
) -> Reviewed:
    """Export dropped spans, or disagreements, as tasks for review in Prodigy; see `export`."""
    _check(out, splits)
    files = [name for name, asked in ((DROPPED, dropped), (DISAGREEMENTS, disagreements)) if asked]
    with _replaced(out) as folder:
        return write_review(corpus, folder, files, splits)


def _check(out: Path, splits: Sequence[str]) -> None:
    check_replaceable(out, (MARK,), "export")
    check_unchanged(out, MARK)
    if unknown := [split for split in splits if split not in SPLITS]:
        raise InputError(f"--splits: there is no split {unknown[0]!r}; give some of {','.join(SPLITS)}")


@contextmanager
def _replaced(out: Path) -> Iterator[Path]:
    """Open a folder that replaces an earlier export, with a mark that identifies it."""
    with atomic(out, folders=[out]) as [folder]:
        folder.mkdir()
        yield folder
        (folder / MARK).write_bytes(msgspec.json.encode({"files": list_digests(folder)}) + b"\n")
