"""Read a folder of brat documents as tasks, by the converter's default policies."""

from collections.abc import Iterator
from pathlib import Path

from labelwise.sources.brat import NOT_CONVERTED, find_documents, read_document
from labelwise.sources.brat_predicted import find_predicted
from labelwise.sources.items import Item
from labelwise.sources.prodigy import Task, TaskSpan

# The outcome of a document that has no text, by the reason; others are malformed.
OUTCOMES = {
    "no annotation file": "not annotated: no annotation file",
    "prediction": "prediction",
}


def read_brat(folder: Path) -> Iterator[Item]:
    """Yield the annotated documents of a folder as tasks, and each line that yielded nothing as a problem.

    A document's number in the folder counts as its line.
    """
    predicted = find_predicted(folder)
    for number, stem in enumerate(find_documents(folder), 1):
        document = read_document(stem, folder, predicted=predicted)
        for problem in document.problems:
            # Without a text, the document is the problem, and its lines don't count.
            if document.text is None and problem.line == 0:
                reason = OUTCOMES.get(problem.reason, f"malformed: {problem.reason}")
                yield Item(0, None, reason, problem.file)
            elif document.text is not None and problem.reason in NOT_CONVERTED:
                yield Item(problem.line, None, f"invalid: {problem.reason}: {problem.row}", problem.file)
        if document.text is not None:
            spans = [TaskSpan(*mention[:3], place=mention.place) for mention in document.mentions]
            task = Task(
                document.text, spans, view_id="spans_manual", meta={"doc": document.path}, document=document.path
            )
            yield Item(number, task) if not document.text.isspace() else Item(number, None, "no text")
