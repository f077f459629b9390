"""Write texts with spans as a brat folder: https://brat.nlplab.org/standoff.html"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import counted, encode_json, name_counts
from labelwise.export.originals import MAX_NAMED, Originals, Restored
from labelwise.export.source import ExportDoc, Exported, ExportSource
from labelwise.export.standoff import brat_label, standoff
from labelwise.sources.brat import PREDICTIONS, SUFFIXES, digest_of
from labelwise.sources.files import read_file

MAX_NAME_BYTES = 200  # of a file's name
CONFIG, LIST, LEFT_OUT = "annotation.conf", "documents.tsv", "left_out.tsv"
OVERLAP = "<OVERLAP>\tArg1:<ENTITY>, Arg2:<ENTITY>, <OVL-TYPE>:<ANY>"  # lets brat accept overlapping spans
# Lines that aren't spans, by their first character.
KINDS = {"R": "relations", "*": "equivalences", "E": "events", "A": "attributes", "M": "attributes"}
KINDS |= {"N": "normalizations", "#": "notes"}
UNSAFE = re.compile(r'[\x00-\x1f<>:"|?*\\]')


def write_brat(source: ExportSource, folder: Path, originals: Originals) -> Exported:
    """Write NAME.txt and NAME.ann for each text, annotation.conf, and documents.tsv.

    A text keeps its document's name and folders; without a name, it is named after its digest. documents.tsv lists the
    documents in order. A text from `originals` goes back to its documents there, with their other lines; left_out.tsv
    has the lines that can't be kept.

    RAISES (InputError): if two labels are equal without white space, which brat's labels can't have, or an original is
        missing or has changed.
    """
    names: dict[str, str] = {}
    for label in source.labels:
        if names.setdefault(brat_label(label), label) != label:
            raise InputError(f"labels {label!r} and {names[brat_label(label)]!r} are the same in brat; rename one")
    originals = Originals() if source.predicted else originals
    digests: dict[str, str] = {}
    used = originals.reserved()
    left_out, first = Counter[str](), list[str]()
    with ExitStack() as stack:
        listed, beside = (
            stack.enter_context((folder / name).open("w", encoding="utf8", newline="")) for name in (LIST, LEFT_OUT)
        )
        listed.write("document\tmistakes_per_word\n")
        for doc in source.read():
            files = []
            for restored in originals.restore(doc):
                files.append(write_restored(restored, folder))
                for place, row in restored.left_out:
                    left_out[KINDS[row[0]]] += 1
                    first += [place] if len(first) < MAX_NAMED else []
                    beside.write(f"{place}\t{row}\n")
            for file in files or [write_document(doc, folder, used)]:
                name = file.relative_to(folder).as_posix()
                if doc.predicted:
                    digests[name] = digest_of(file.read_bytes())
                listed.write(f"{name}\t{f'{doc.mistakes_per_word():.3f}' if source.certain else ''}\n")
    originals.check()
    write_config(folder, [*names], originals)
    if digests:
        (folder / PREDICTIONS).write_bytes(encode_json(digests, indent=1))
    warnings = _left_out(source)
    if left_out:
        what = f"{counted(left_out.total(), 'line')} left out, because spans that they name are gone"
        warnings.append((f"{what}: {name_counts(left_out)}", f"{LEFT_OUT} lists them; the first: {', '.join(first)}"))
    else:
        (folder / LEFT_OUT).unlink()
    rename = {name: label for name, label in names.items() if name != label}
    return Exported(source.texts, source.spans, warnings=warnings, rename=rename)


def write_restored(restored: Restored, folder: Path) -> Path:
    """Write a restored document; return its first annotation file."""
    file = folder / restored.stem
    file.parent.mkdir(parents=True, exist_ok=True)
    for suffix, content in restored.files.items():
        file.with_name(file.name + suffix).write_bytes(content)
    return file.with_name(file.name + min(restored.files.keys() - {".txt"}, key=SUFFIXES.index))


def write_config(folder: Path, labels: Sequence[str], originals: Originals) -> None:
    """Copy brat's configuration from the originals, with missing labels; or write one."""
    for file in originals.configs():
        target = folder / file.relative_to(originals.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_file(file))
    config = folder / CONFIG
    if not config.exists():
        entities = [label for label in labels if label not in originals.types["E"]]
        arguments = {
            "relations": {name: [f"{role}:<ANY>" for role in roles] for name, roles in originals.types["R"].items()},
            "events": {name: [f"{role}*:<ANY>" for role in roles] for name, roles in originals.types["E"].items()},
            "attributes": {
                name: ["Arg:<ANY>", *(["Value:" + "|".join(sorted(values))] if values else [])]
                for name, values in originals.types["A"].items()
            },
        }
        lines = {
            name: [f"{one}\t{', '.join(sorted(some))}" for one, some in sorted(types.items())]
            for name, types in arguments.items()
        }
        # brat needs all four sections.
        sections = {"entities": entities, **lines, "relations": [OVERLAP, *lines["relations"]]}
        content = "\n".join("\n".join((f"[{name}]", *some, "")) for name, some in sections.items())
        config.write_text(content, encoding="utf8")
        return
    content = config.read_text(encoding="utf8", errors="surrogateescape")
    known = {line.split()[0] for line in content.splitlines() if line.strip()}
    if new := [label for label in labels if label not in known]:
        content = content.replace("[entities]", "\n".join(("[entities]", *new)), 1)
        config.write_text(content, encoding="utf8", errors="surrogateescape")


def _left_out(source: ExportSource) -> list[tuple[str, str]]:
    """List annotations that brat can't represent, with the formats that can."""
    warnings = []
    if source.rejected:
        left_out = f"{counted(source.rejected, 'rejected span')} left out"
        warnings.append((left_out, "brat has no place for them; the other formats keep them"))
    if source.incomplete and not source.predicted:
        texts = counted(source.incomplete, "text isn't", "texts aren't")
        remedy = "brat can't record that: read back, they count as fully annotated. The other formats keep it"
        warnings.append((f"{texts} fully annotated for all labels", remedy))
    return warnings


def write_document(doc: ExportDoc, folder: Path, used: set[str]) -> Path:
    """Write a text and its spans; return the annotation file. `used` has the documents so far."""
    path = document_path(doc)
    if caseless(path) in used:  # two texts with one name
        path = path.with_name(f"{path.stem}-{doc.key[:12]}.txt")
    used.add(caseless(path))
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(doc.text, encoding="utf8", newline="")
    lines = [standoff(doc.text, span, number) for number, span in enumerate(doc.spans, 1)]
    file.with_suffix(".ann").write_text("".join(lines), encoding="utf8", newline="")
    return file.with_suffix(".ann")


def document_path(doc: ExportDoc) -> PurePosixPath:
    """Return the path of a text in its folder: never outside, and safe on every file system."""
    named = (UNSAFE.sub("_", part) for part in PurePosixPath(doc.name).parts if part not in ("/", "..", "."))
    # Cut to what file systems allow, in bytes, with some left for a suffix.
    parts = [part.encode("utf8", "replace")[:MAX_NAME_BYTES].decode("utf8", "ignore") for part in named]
    path = PurePosixPath(*parts) if parts else PurePosixPath(doc.key)
    return path if path.suffix == ".txt" else path.with_name(f"{path.name}.txt")
