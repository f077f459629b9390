"""Look up what belongs to findings: mistakes on test, places in the sources, and texts; one pass for each."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from labelwise.check.folds import read_checked
from labelwise.check.worklists import Finding, Text
from labelwise.common.keys import text_key
from labelwise.common.spans import trim_usable
from labelwise.evaluate.mistakes import pairs_of
from labelwise.evaluate.predictions import read_predictions
from labelwise.sources.declarations import DataSet
from labelwise.sources.formats import read_items
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import Task, annotator_of, kind_of


def explain(findings: Sequence[Finding], predictions: Path) -> None:
    """Count, for each finding, the mistakes on test that are about its form, and its label or both of its labels."""
    wanted = {one.form for one in findings}
    mistakes: Counter[tuple[str, frozenset[str]]] = Counter()
    for doc in read_predictions(predictions):
        for pair in pairs_of(doc):
            if pair.kind:
                spans = [span for span in pair if span]
                labels = frozenset(label for _, _, label in spans)
                forms = {" ".join(doc.text[start:end].split()) for start, end, _ in spans}
                mistakes.update((form, labels) for form in forms & wanted)
    for one in findings:
        own = {frozenset(one.labels), frozenset((one.label,))}
        one.explains = sum(mistakes[one.form, labels] for labels in own)


def locate(findings: Sequence[Finding], datasets: Sequence[DataSet], *, normalize: bool) -> None:
    """Look up the data sets, files and lines that findings are in, and who annotated.

    A complete answer is about all of its text, a binary one about its spans; ignored and rejected ones say nothing.
    """
    wanted: dict[bytes, list[Finding]] = {}
    for one in findings:
        wanted.setdefault(bytes.fromhex(one.key), []).append(one)
    for dataset in datasets:
        for path in dataset.files:
            for item in read_items(path, dataset.name if dataset.database else ""):
                task = item.task and (normalize_task(item.task) if normalize else item.task)
                if task is None or not task.text:
                    continue
                for one in wanted.get(text_key(task.text.encode("utf8", "surrogatepass")), ()):
                    if set(one.labels) & set(dataset.labels) and _is_about(task, dataset, one):
                        place, who = _place(task, one) or f"{path.name}:{item.line}", annotator_of(task)
                        one.places.append(f"{dataset.name} {place}" + (f" ({who})" if who else ""))
                        one.datasets[dataset.name] = dataset.labels


def read_texts(corpus: Path, keys: set[str]) -> dict[str, Text]:
    """Read some texts of a corpus, by key."""
    found = {}
    for doc in read_checked(corpus):
        key = text_key(doc.stored.text.encode("utf8")).hex()
        if key in keys:
            found[key] = Text(doc.stored.text, sorted(doc.stored.annotation.accepted))
    return found


def _place(task: Task, finding: Finding) -> str:
    """Name the document of a brat folder, and the line of the span, if it is there; empty for another source."""
    if not task.document:
        return ""
    here = finding.current and finding.current[:2]
    spans = [span for span in task.spans or () if trim_usable(task.text or "", span.start, span.end) == here]
    lines = [span.place for span in spans if span.place]
    return f"{lines[0][0]}:{lines[0][1]}" if lines else task.document


def _is_about(task: Task, dataset: DataSet, finding: Finding) -> bool:
    kind = kind_of(task) if dataset.kind == "auto" else dataset.kind
    if task.answer == "ignore" or kind == "other":
        return False
    if kind == "complete":
        return task.answer == "accept"
    spans = [span for span in (finding.current, finding.proposed) if span]
    told = [trim_usable(task.text or "", span.start, span.end) for span in task.spans or ()]
    return any(start < span[1] and span[0] < end for start, end in told for span in spans)
