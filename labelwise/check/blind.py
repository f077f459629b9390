"""A sample of test to annotate anew, for each label: what test says of a pipeline is right as far as its gold is.

A test that is corrected where a pipeline disagrees with it moves towards that pipeline. So these texts are drawn at
random, which needs no predictions: those that a pipeline agrees with and those that it doesn't are there as often as in
all of test. No task shows gold or predictions, nor tells which it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from labelwise.check.folds import CheckedDoc
from labelwise.corpus.tasks import LabelFiles

BLIND = "test"  # the folder
MOST = 100  # texts for a label


def write_blind(
    docs: Iterable[CheckedDoc], labels: Sequence[str], declared: Mapping[str, Sequence[str]], folder: Path
) -> None:
    """Write LABEL.jsonl for each label: a task without spans for each of the first texts.

    The first ones are a random sample, the same for the same texts: a corpus is sorted by a digest of the texts. Those
    that nobody has annotated for the label are among them: what is predicted there can't be judged before.

    docs (Iterable[CheckedDoc]): test, in order.
    declared (Mapping): the labels of each data set. A task names in `meta.labels` all those of the data sets that it is
        from, as an answer that is saved there again is about these, too.
    """
    folder.mkdir()
    with LabelFiles(folder, labels) as files:
        for doc in islice(docs, MOST):
            text, merged = doc.stored.text, doc.stored.annotation
            datasets = [declared.get(dataset, ()) for dataset in merged.datasets]
            for label in labels:
                shown = sorted({label}.union(*(names for names in datasets if label in names)))
                meta = {"doc": merged.doc, "labels": ",".join(shown)}
                files.write(label, msgspec.json.encode({"text": text, "spans": [], "meta": meta}) + b"\n")
