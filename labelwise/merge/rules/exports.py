"""The same annotation in several exports: the latest counts, so that spans which were deleted stay deleted.

Answers are one annotation at several times if they have the same identity, in different files. It is what the tool
says: Label Studio's ids of task and annotation, in whatever data set; within a data set of several files, Prodigy's
`_task_hash`, or doccano's id, with the annotator. The later one is that of the later time, then of the later date in
its file's name, then of the file that is listed later; never a file's own time, as bytes depend on data alone.
"""

from collections.abc import Iterator, Sequence

from labelwise.merge.rules.answers import Answer, annotator


def superseded(answers: Sequence[Answer]) -> Iterator[tuple[Answer, Answer]]:
    """Yield the answers that aren't in the latest export of their annotation, each with the one that is.

    answers (Sequence[Answer]): of one text, in the order of the data sets and their files.
    """
    if len(answers) < 2:
        return
    exports: dict[tuple[str, ...], list[tuple[int, Answer]]] = {}
    for place, answer in enumerate(answers):
        if named := identity(answer):
            exports.setdefault(named, []).append((place, answer))
    for group in exports.values():
        _, latest = max(group, key=lambda one: (one[1].order[:2], one[0]))
        yield from ((answer, latest) for _, answer in group if answer.file != latest.file)


def identity(answer: Answer) -> tuple[str, ...]:
    """Tell which annotation an answer is; empty if that isn't known."""
    if answer.task.annotation:
        return (answer.task.annotation,)
    if answer.task.task_hash is None or len(answer.dataset.files) < 2:
        return ()
    return (answer.dataset.name, str(answer.task.task_hash), *annotator(answer))
