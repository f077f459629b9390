"""Write texts with spans as a brat folder: https://brat.nlplab.org/standoff.html"""

import re
from pathlib import Path, PurePosixPath

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import SpanKey, counted
from labelwise.export.source import ExportDoc, Exported, ExportSource
from labelwise.sources.brat import PREDICTIONS, digest_of

LINE_ENDS = re.compile(r"[\r\n]+")
LONGEST = 200  # bytes of a name
# All four sections have to be there; the special relation has brat accept spans that overlap.
CONFIG = """\
[entities]
{}

[relations]
<OVERLAP>\tArg1:<ENTITY>, Arg2:<ENTITY>, <OVL-TYPE>:<ANY>

[events]

[attributes]
"""
UNSAFE = re.compile(r'[\x00-\x1f<>:"|?*\\]')


def write_brat(source: ExportSource, folder: Path) -> Exported:
    """Write NAME.txt and NAME.ann for each text, annotation.conf, and documents.tsv.

    A text keeps its document's name and folders; without a name, it is named after its digest. documents.tsv lists the
    documents in their order.

    RAISES (InputError): two labels are the same without white space, which brat's labels don't have.
    """
    names: dict[str, str] = {}
    for label in source.labels:
        if names.setdefault(brat_label(label), label) != label:
            raise InputError(f"labels {label!r} and {names[brat_label(label)]!r} are the same in brat; rename one")
    (folder / "annotation.conf").write_text(CONFIG.format("\n".join(names)), encoding="utf8")
    digests: dict[str, str] = {}
    taken = set[str]()
    with (folder / "documents.tsv").open("w", encoding="utf8", newline="") as listed:
        listed.write("document\tuncertainty\n")
        for doc in source.read():
            file = write_document(doc, folder, taken)
            name = file.relative_to(folder).as_posix()
            if doc.predicted:
                digests[name] = digest_of(file.read_bytes())
            listed.write(f"{name}\t{f'{doc.uncertainty():.3f}' if source.certain else ''}\n")
    if digests:
        (folder / PREDICTIONS).write_bytes(msgspec.json.format(msgspec.json.encode(digests), indent=1) + b"\n")
    rename = {name: label for name, label in names.items() if name != label}
    return Exported(source.texts, source.spans, warnings=_left_out(source), rename=rename)


def _left_out(source: ExportSource) -> list[tuple[str, str]]:
    """List what brat's files have no place for, with the formats that do."""
    warnings = []
    if source.rejected:
        left_out = f"{counted(source.rejected, 'rejected span')} left out"
        warnings.append((left_out, "brat has no place for them; the other formats keep them"))
    if source.incomplete and not source.predicted:
        texts = counted(source.incomplete, "text isn't", "texts aren't")
        remedy = "brat can't say so, so they are when read back; the other formats keep it"
        warnings.append((f"{texts} complete for all labels", remedy))
    return warnings


def write_document(doc: ExportDoc, folder: Path, taken: set[str]) -> Path:
    """Write a text and its spans; return the file of these.

    taken (set[str]): the documents written so far, as `caseless` has them; this one is added.
    """
    path = document_path(doc)
    if caseless(path) in taken:  # two texts with one name
        path = path.with_name(f"{path.stem}-{doc.key[:12]}.txt")
    taken.add(caseless(path))
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(doc.text, encoding="utf8", newline="")
    lines = [standoff(doc.text, span, number) for number, span in enumerate(doc.spans, 1)]
    file.with_suffix(".ann").write_text("".join(lines), encoding="utf8", newline="")
    return file.with_suffix(".ann")


def document_path(doc: ExportDoc) -> PurePosixPath:
    """Make the path of a text in its folder, whatever its name is: never outside, and safe on every file system."""
    named = (UNSAFE.sub("_", part) for part in PurePosixPath(doc.name).parts if part not in ("/", "..", "."))
    # Cut to what file systems allow, in bytes, with some left for a suffix.
    parts = [part.encode("utf8", "replace")[:LONGEST].decode("utf8", "ignore") for part in named]
    path = PurePosixPath(*parts) if parts else PurePosixPath(doc.key)
    return path if path.suffix == ".txt" else path.with_name(f"{path.name}.txt")


def brat_label(label: str) -> str:
    """Write a label without white space, at which brat would cut it."""
    return "_".join(label.split())


def standoff(text: str, span: SpanKey, number: int) -> str:
    r"""Write a span as a line of standoff, in pieces where lines end, which brat's spans can't cross.

    >>> standoff("two\nlines", (0, 9, "A"), 1)
    'T1\tA 0 3;4 9\ttwo lines\n'
    """
    start, end, label = span
    edges = [start]
    for found in LINE_ENDS.finditer(text, start, end):
        edges += found.span()
    pieces = [piece for piece in zip(edges[::2], [*edges[1::2], end], strict=True) if piece[0] < piece[1]]
    offsets = ";".join(f"{first} {last}" for first, last in pieces)
    return f"T{number}\t{brat_label(label)} {offsets}\t{' '.join(text[first:last] for first, last in pieces)}\n"
