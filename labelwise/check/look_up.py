"""Look up what belongs to findings: mistakes on test, places in the sources, and texts; one pass for each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from labelwise.check.folds import read_checked
from labelwise.check.worklists import Finding, Text
from labelwise.common.keys import text_key
from labelwise.corpus.places import AnswerPlace, read_places
from labelwise.evaluate.mistakes import pairs_of
from labelwise.evaluate.predictions import read_predictions


def explain(findings: Sequence[Finding], predictions: Path) -> None:
    """Count, for each finding, the mistakes on test that are about its form, and its label or both of its labels."""
    wanted = {one.form for one in findings}
    mistakes: Counter[tuple[str, frozenset[str]]] = Counter()
    for doc in read_predictions(predictions):
        for pair in pairs_of(doc):
            if pair.kind:
                forms = {doc.form(span) for span in pair if span}
                mistakes.update((form, frozenset(pair.labels) - {""}) for form in forms & wanted)
    for one in findings:
        own = {frozenset(one.labels), frozenset((one.label,))}
        one.explains = sum(mistakes[one.form, labels] for labels in own)


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
                    one.places.append(f"{answer.dataset} {_place(answer, one)}{who}")
                    one.datasets[answer.dataset] = labels


def read_texts(corpus: Path, keys: set[str]) -> dict[str, Text]:
    """Read some texts of a corpus, by key."""
    texts = ((doc.stored.text, doc.stored.annotation.accepted) for doc in read_checked(corpus))
    return {key: text for text in texts if (key := text_key(text[0].encode("utf8")).hex()) in keys}


def _place(answer: AnswerPlace, finding: Finding) -> str:
    """Name the file and the line: those of the span that is there, if it has a line of its own; a document has none."""
    here = finding.current and finding.current[:2]
    file, line = next(
        ((file, line) for start, end, file, line in answer.lines if (start, end) == here), (answer.file, answer.line)
    )
    return f"{file}:{line}" if line else file


def _is_about(answer: AnswerPlace, finding: Finding) -> bool:
    spans = [span for span in (finding.current, finding.proposed) if span]
    return answer.judged is None or any(
        start < span[1] and span[0] < end for start, end in answer.judged for span in spans
    )
