"""Check a corpus for annotations that contradict the others, most certain first.

1. Count each surface form annotated with each label, and unannotated: two passes over train and dev.
2. Optionally train a pipeline per fold of train, without the fold (`folds`).
3. Find annotations that contradict the others, text by text (`findings`), and inconsistent boundaries
   (`inconsistencies`).
4. Look up their dataset, file and line in the tables of the merge (`finding`).

The test set isn't checked.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.files import atomic, check_replaceable
from labelwise.base.parallel import Progress, no_progress
from labelwise.check.finding import Finding, finding_of, locate, rank
from labelwise.check.findings import find_corrections
from labelwise.check.folds import Folds, ask_folds, read_checked
from labelwise.check.inconsistencies import Inconsistencies
from labelwise.corpus.manifest import read_manifest, read_split, unchanged
from labelwise.corpus.record import LEARNED
from labelwise.corpus.surface_forms import SurfaceForms
from labelwise.corpus.tables import read_groups

FINDINGS = "findings.jsonl"


def check(
    corpus: Path,
    out: Path,
    folds: Folds | None = None,
    *,
    tell: Callable[[str], Any] = lambda message: None,
    progress: Progress = no_progress,
) -> tuple[int, list[Finding]]:
    """Check a corpus, and write the findings to a folder, replacing it.

    folds (Folds | None): cross-validation; None uses word counts only (seconds, fewer findings).
    RAISES (InputError): if a number is out of range, there is no corpus, `out` has other content, or training fails.
    RETURNS (tuple): number of texts of train and dev, and their findings, most certain first.
    """
    corpus, out = corpus.absolute(), out.absolute()
    check_replaceable(out, (FINDINGS,), "check")
    manifest = read_manifest(corpus)
    labels, declared = manifest.labels, manifest.declared
    with atomic(out, folders=[out]) as [folder], unchanged(corpus):
        folder.mkdir()
        total = sum(manifest.splits[split].texts for split in LEARNED if split in manifest.splits)
        forms, spans, inconsistencies = count_corpus(corpus, labels, progress, total)
        next(read_groups(corpus), None)  # an error if the tables are missing, before anything is trained
        texts, corrections, boundaries = 0, list[Finding](), list[Finding]()
        asked = ask_folds(folds, out, corpus, labels, tell, progress) if folds else None
        for doc in asked or progress(read_checked(corpus, *LEARNED), "compare", total):
            texts += 1
            corrections += (finding_of(doc, one, labels) for one in find_corrections(doc.stored, forms, doc.prediction))
            boundaries += inconsistencies.find(doc)
        findings = sorted([*rank(corrections, spans), *boundaries], key=lambda finding: -finding.score)
        locate(findings, corpus, declared, progress)
        head = {"digest": read_split(corpus / "train").digest, "texts": texts, "folds": folds.number if folds else 0}
        with (folder / FINDINGS).open("wb") as file:
            for row in (head, *findings):
                file.write(msgspec.json.encode(row) + b"\n")
    return texts, findings


def count_corpus(
    corpus: Path, labels: Sequence[str], progress: Progress, total: int
) -> tuple[SurfaceForms, Counter[str], Inconsistencies]:
    """Count surface forms, the spans of each label, and edges, in two passes."""
    forms, spans = SurfaceForms(labels), Counter[str]()
    inconsistencies = Inconsistencies(forms)
    for doc in progress(read_checked(corpus, *LEARNED), "count spans", total):
        forms.look_for(doc.stored)
        forms.mark(doc.stored)
        spans.update(label for _, _, label, _ in doc.stored.annotation.gold)
    for doc in progress(read_checked(corpus, *LEARNED), "count words", total):
        forms.release(doc.stored)
        inconsistencies.count(doc.stored)
    return forms, spans, inconsistencies
