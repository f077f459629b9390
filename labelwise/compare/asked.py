"""Count the pipelines scored on a test set, in git's history.

A test set that chooses among many experiments is a development set. Only a sentence depends on the number. 1,000
commits take 0.2 seconds.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from labelwise.base.conflicts import git
from labelwise.base.text import counted
from labelwise.evaluate.scores import Metrics

# What a pipeline depends on beside its config and its seed: corpus and code, and the steps in project.yml.
FACTS = ("metrics/merge.sha256", "labelwise/corpus", "labelwise/train", "spacy_per_label", "project.yml")
STEPS = re.compile(rb"(?m)^  steps: *(\d+)")


def describe_asked(metrics: Metrics, root: Path = Path()) -> str:
    """Describe how many pipelines were scored on an evaluation's texts; "" if no commit has its scores."""
    if not (n := count_pipelines(metrics.texts_digest, root)):
        return ""
    shallow = git(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    known = "this shallow clone's history" if shallow else "this clone's history"
    were = "was" if n == 1 else "were"
    texts = f"exactly these {counted(metrics.texts, 'text')}"
    return f"At least {counted(n, 'pipeline')} {were} scored on {texts}, in {known}"


def count_pipelines(texts_digest: str, root: Path = Path()) -> int:
    """Count distinct configs, corpora and code with scores on these texts, in commits and DVC's experiments."""
    changed = ("--all", "--full-history", "--format=%x00%H", "--name-only", "--relative", "--", "metrics/*.json")
    names: list[str] = []
    for commit in git(root, "log", *changed).decode().split("\0")[1:]:
        revision, *paths = commit.split()
        for path in paths:
            files = path, f"configs/{Path(path).stem}.cfg", *FACTS
            names += [f"{revision}:./{file}" for file in files]
    objects, pipelines = _read_objects(names, root), set()
    same = re.compile(rf'"texts_digest": ?"{texts_digest}"'.encode())
    for scores, *facts, project in zip(*[objects] * (len(FACTS) + 2), strict=True):
        if same.search(scores[1]):
            pipelines.add((*(digest for digest, _ in facts), *STEPS.findall(project[1])))
    return len(pipelines)


def _read_objects(names: Sequence[str], root: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield digest and content of git's objects, by one process; both are empty for missing objects."""
    with TemporaryFile() as requests, TemporaryFile() as replies:
        requests.write("".join(f"{name}\n" for name in names).encode())
        requests.seek(0)
        subprocess.run(["git", "cat-file", "--batch"], cwd=root, stdin=requests, stdout=replies, check=False)  # noqa: S607
        replies.seek(0)
        for header in iter(replies.readline, b""):
            digest, *_, size = header.split()
            yield (b"", b"") if size == b"missing" else (digest, replies.read(int(size) + 1))
