"""What a completion leaves for training: texts in train, all of them complete, and the pipeline that completed them.

    training/cpu/completed/{completion.json,train/part-*.spacy,model}

If there was nothing to complete, `completion.json` says why, and there is nothing else.
"""

import hashlib
import json
from pathlib import Path

from thinc.api import Config

from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import merged_data, read_stored_docs
from labelwise.corpus.manifest import COMPLETION, MANIFEST, find_partitions
from labelwise.train.pipeline import Recognizer

BOOKS = COMPLETION
TEACHER = "model"


def is_partial(split: Path) -> bool:
    """Tell whether some text of a split isn't complete for all labels; reads until it finds one."""
    return any(merged_data(doc)["uncovered"] for file in find_partitions(split) for doc in read_stored_docs(file))


def is_completed(completed: Path, corpus: Path) -> bool:
    """Tell whether a completion has texts for a corpus.

    RAISES (InputError): it was never made, or for another corpus.
    """
    try:
        books = json.loads((completed / BOOKS).read_text(encoding="utf8"))
        of_corpus, skipped = books["corpus"], books["skipped"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        raise InputError(f"{completed / BOOKS}: {error!r}; run the completion (scripts.complete)") from error
    if of_corpus != hashlib.sha256((corpus / MANIFEST).read_bytes()).hexdigest():
        raise InputError(f"{completed}: it completes another corpus than {corpus}; run the completion again")
    return not skipped


def read_completed(settings: Config, corpus: Path, recognizer: Recognizer, completed: Path | None) -> None:
    """Have spaCy's ner read completed texts, in place.

    RAISES (InputError): there are none, and some text isn't complete for all labels, so that the ner would see entities
        everywhere: nothing tells it what isn't one.
    """
    reader = settings["corpora"]["train"]
    if completed:
        reader["path"] = str(completed / "train")
    elif recognizer == "ner" and reader["coverage"] == "by-label" and is_partial(corpus / "train"):
        policies = json.loads((corpus / MANIFEST).read_text(encoding="utf8"))["settings"]["policies"]
        if policies["coverage"] == "by-label":
            raise InputError(
                "recognizer ner: texts in train aren't complete for all labels, and spaCy's ner can't learn from them "
                "as they are. Complete them (scripts.complete, then --completed), or take recognizer per-label, or set "
                "coverage to drop or outside"
            )
