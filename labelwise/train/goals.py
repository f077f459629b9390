"""Goals of precision or recall by label, in a config's block [labelwise]; fitted on dev."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from spacy.language import Language
from thinc.api import Config

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.pipeline import predict_each
from labelwise.train.config_file import ConfigFile
from labelwise.train.reader import make_reference
from labelwise.train.steps import read_block
from spacy_per_label.operating_point import Figure, Goal, OperatingPoints

KEYS = get_args(Figure)


def without_goals(settings: Config) -> Config:
    """Copy a config's values without goals, which no training step depends on."""
    settings = settings.copy()
    for key in KEYS:
        settings.get("labelwise", {}).pop(key, None)
    return settings


def read_goals(file: ConfigFile, settings: Config, corpus: Path) -> dict[str, Goal]:
    """Read the goals of a corpus's labels; a label's own goal overrides the goal for all.

    RAISES (InputError): if a goal isn't a share, a label has two goals or isn't in the corpus, or the recognizer can't
        have goals.
    """
    block, labels = read_block(settings.interpolate(), file), read_manifest(corpus).labels
    written = {key: value for key in KEYS if (value := getattr(block, key)) is not None}
    goals: dict[str, Goal] = {}
    for key, value in sorted(written.items(), key=lambda item: isinstance(item[1], dict)):
        by_label = isinstance(value, dict)
        if settings["components"]["ner"].get("factory") != "per_label":
            raise file.error(f"labelwise.{key}", 'goals need [components.ner] factory = "per_label"; delete the key')
        for label, share in (value if by_label else dict.fromkeys(labels, value)).items():
            if label in goals and isinstance(written[goals[label].figure], dict) == by_label:
                problem = f"{label} has a goal of {goals[label].figure}, too; give each label one goal"
                raise file.error(f"labelwise.{key}", problem)
            if label not in labels:
                raise file.error(
                    f"labelwise.{key}", f"the corpus has no {label!r}, but {', '.join(labels)}; correct it"
                )
            goals[label] = Goal(key, share)
    return goals


def fit_points(
    nlp: Language, texts: Iterator[StoredDoc], goals: Mapping[str, Goal], corpus: Path
) -> dict[str, dict[str, Any]]:
    """Choose and set the operating points of a calibrated recognizer.

    texts (Iterator[StoredDoc]): of dev, predicted once; only numbers are kept.
    """
    ner: Any = nlp.get_pipe("ner")
    fitting = OperatingPoints(ner, goals, find_longest(corpus))
    ner.cfg["points"] = fitting.candidates
    for stored, doc in predict_each(nlp, texts, len):
        fitting.add(doc, make_reference(stored, nlp.vocab), stored.annotation.unit or None)
    ner.cfg["points"] = fitting.fit()
    return ner.cfg["points"]


def find_longest(corpus: Path) -> dict[str, int]:
    """Return the length in tokens of each label's longest gold span in train."""
    longest: dict[str, int] = {}
    for file in find_partitions(corpus / "train"):
        for stored in read_stored_docs(file):
            for start, end, label in stored.gold:
                name = stored.strings[label]
                longest[name] = max(longest.get(name, 0), end - start)
    return longest


def describe_points(points: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Describe the labels' figures on dev, a sentence per shared point, with a remedy; "" if none is due."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for label, point in points.items():
        groups.setdefault(tuple(point[key] for key in ("figure", "goal", "least", "bound")), []).append(label)
    for (figure, goal, least, bound), labels in groups.items():
        figures = f"{', '.join(labels)}: {figure} {goal}"
        if bound >= goal:
            yield (
                f"{figures} is reached on dev: at least {bound:.3f}, by entities of probability {least:.3f} or more",
                "",
            )
        else:
            yield f"{figures} can't be reached on dev, but {bound:.3f}", "Annotate more texts, or lower the goal"
