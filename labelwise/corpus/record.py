"""Record the files of a trained pipeline and its corpus, to detect edits and other corpora."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import list_digests
from labelwise.corpus.manifest import RawTexts, Split, digest_merge, digest_splits, read_manifest

RECORD = "trained.json"
WEIGHTS = "ner/model"
LEARNED: tuple[Split, ...] = ("train", "dev")  # the splits that a training reads


def write_record(
    pipeline: Path, changed: Mapping[str, tuple[Any, Any]] = {}, corpus: str = "", raw: Any = None
) -> None:
    """Record changes to the config, by dotted key, the corpus, a student's raw texts, and digests of the files."""
    record = {"changed": changed, "corpus": corpus, **({"raw": raw} if raw else {}), "files": list_digests(pipeline)}
    (pipeline / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")


def read_raw(pipeline: Path) -> RawTexts | None:
    """Read a student's record of raw texts; None for other pipelines, or without a record."""
    file = pipeline / RECORD
    raw = json.loads(file.read_bytes()).get("raw") if file.is_file() else None
    return msgspec.convert(raw, RawTexts) if raw else None


def digest_corpus(corpus: Path) -> str:
    """Digest the labels and the splits that a training reads."""
    return digest_splits(corpus, LEARNED)


def check_corpus(pipeline: Path, corpus: Path) -> None:
    """Refuse a pipeline that wasn't trained on a corpus, or on one made from it, or has no complete record."""
    try:
        record, manifest = json.loads((pipeline / RECORD).read_bytes()), read_manifest(corpus)
        if merged := "raw" in record and "raw" not in manifest.settings:
            record = record["raw"]
        trained = record["corpus"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{pipeline / RECORD}: it doesn't name the corpus ({error!r}); train again") from error
    if trained != (digest_merge(manifest) if merged else digest_corpus(corpus)):
        raise InputError(f"{pipeline}: trained on another corpus than {corpus}; train and evaluate again")


def find_trained(pipeline: Path, digests: Mapping[str, str]) -> Iterator[Path]:
    """Yield the trained pipelines beside training/NAME/model-best with the same recognizer."""
    for record in sorted(pipeline.absolute().parent.parent.glob(f"*/{pipeline.name}/{RECORD}")):
        with suppress(ValueError, LookupError, TypeError):  # a record that was edited is of no training
            if json.loads(record.read_bytes())["files"][WEIGHTS] == digests[WEIGHTS]:
                yield record.parent


def find_edited(pipeline: Path, digests: Mapping[str, str]) -> list[str]:
    """List files changed, added or deleted since training; empty without a record."""
    try:
        trained = json.loads((pipeline / RECORD).read_bytes())["files"].items()
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, AttributeError, TypeError):
        return [RECORD]
    now = {item for item in digests.items() if item[0] != RECORD}
    return sorted({name for name, _ in now ^ set(trained)})
