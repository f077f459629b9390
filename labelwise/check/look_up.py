"""Look up what belongs to findings: mistakes on dev, places in the sources, and texts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from spacy.strings import get_string_id

from labelwise.check.folds import LOOKED_AT, CheckedDoc, read_checked
from labelwise.check.worklists import Finding, Text
from labelwise.common.keys import text_key
from labelwise.corpus.counts import Counts
from labelwise.corpus.places import AnswerPlace, read_places
from labelwise.evaluate.mistakes import pairs_of
from labelwise.evaluate.predictions import PredictedDoc


class DevMistakes:
    """Counts the mistakes of the trained pipeline on dev, on which it wasn't trained, by form and label."""

    def __init__(self, labels: Sequence[str]) -> None:
        """Take all labels."""
        self.labels = labels
        self._counts = Counts()

    def add(self, checked: CheckedDoc) -> None:
        """Count the mistakes in a text, if it is one of dev that the pipeline has an opinion on."""
        if checked.split != "dev" or not checked.opinion:
            return
        starts, ends = (array.tolist() for array in checked.stored.offsets())
        places = checked.opinion.found
        found = sorted((starts[start], ends[end - 1], self.labels[number]) for start, end, number in places)
        merged = checked.stored.annotation
        gold, rejected = sorted(merged.accepted), sorted(merged.rejected)
        doc = PredictedDoc("", checked.stored.text, found, gold, [], rejected, dict(merged.uncovered))
        for pair in pairs_of(doc):
            if pair.kind:
                forms = {doc.form(span) for span in pair if span}
                self._counts.add(_keys((form, {*pair.labels} - {""}) for form in forms))

    def explain(self, findings: Iterable[Finding]) -> None:
        """Tell each finding the other mistakes that are about its form, and its label or both of its labels."""
        for one in findings:
            about = {frozenset(one.labels), frozenset((one.label,))}
            mistakes = int(self._counts.of(_keys((one.form, labels) for labels in about)).sum())
            one.explains = max(0, mistakes - (one.split == "dev"))  # one of dev is a mistake itself


def _keys(about: Iterable[tuple[str, Iterable[str]]]) -> np.ndarray:
    """Digest forms with labels."""
    return np.array([get_string_id("\t".join([form, *sorted(labels)])) for form, labels in about], np.uint64)


def locate(findings: Sequence[Finding], corpus: Path, declared: Mapping[str, tuple[str, ...]]) -> None:
    """Look up the data sets, files and lines that findings are in, and who annotated.

    A complete answer is about all of its text, a binary one about its spans.

    declared (Mapping): the labels of each data set.
    """
    wanted: dict[str, list[Finding]] = {}
    for one in findings:
        wanted.setdefault(one.key, []).append(one)
    for text in read_places(corpus):
        for one in wanted.get(text.key, ()):
            for answer in text.answers:
                labels = declared.get(answer.dataset, ())
                if set(one.labels) & set(labels) and _is_about(answer, one):
                    who = f" ({answer.annotator})" if answer.annotator else ""
                    one.places.append(f"{answer.dataset} {answer.of(one.current and one.current[:2])}{who}")
                    one.datasets[answer.dataset] = labels


def read_texts(corpus: Path, keys: set[str]) -> dict[str, Text]:
    """Read some texts of a corpus, by key."""
    texts = ((doc.stored.text, doc.stored.annotation.accepted) for doc in read_checked(corpus, *LOOKED_AT))
    return {key: text for text in texts if (key := text_key(text[0].encode("utf8")).hex()) in keys}


def _is_about(answer: AnswerPlace, finding: Finding) -> bool:
    spans = [span for span in (finding.current, finding.proposed) if span]
    return answer.judged is None or any(
        start < span[1] and span[0] < end for start, end in answer.judged for span in spans
    )
