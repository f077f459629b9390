"""What a completion leaves for training: texts in train, all of them complete, and the pipeline that completed them.

    training/cpu/completed/{completion.json,train/part-*.spacy,model}

If there was nothing to complete, `completion.json` says why, and there is nothing else.
"""

import hashlib
import json
from pathlib import Path

from labelwise.common.errors import InputError
from labelwise.corpus.docbin_reader import merged_data, read_stored_docs
from labelwise.corpus.manifest import COMPLETION, MANIFEST, find_partitions

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
