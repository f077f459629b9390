"""Goals of precision or recall by label, in a config's block [labelwise]; `held_out` fits them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from thinc.api import Config

from labelwise.corpus.manifest import read_manifest
from labelwise.train.config_file import GOALS, ConfigFile, LabelwiseBlock
from spacy_per_label.operating_point import Goal


def read_goals(file: ConfigFile, block: LabelwiseBlock, settings: Config, corpus: Path) -> dict[str, Goal]:
    """Take the goals of a corpus's labels, on which no step depends; a label's own goal overrides the goal for all.

    RAISES (InputError): if a goal isn't a share, a label has two goals or isn't in the corpus, or the recognizer can't
        have goals.
    """
    labels = read_manifest(corpus).labels
    written = {key: value for key in GOALS if (value := getattr(block, key)) is not None}
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
                problem = f"the corpus has no {label!r}, but {', '.join(labels)}; correct it"
                raise file.error(f"labelwise.{key}", problem)
            goals[label] = Goal(key, share)
    for key in written:
        settings["labelwise"].pop(key, None)
    return goals


def describe_points(points: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Describe the labels' figures on dev, a sentence per shared point, with a remedy; "" if none is due."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for label, point in points.items():
        groups.setdefault(tuple(point[key] for key in ("figure", "goal", "least", "bound")), []).append(label)
    for (figure, goal, least, bound), labels in groups.items():
        figures = f"{', '.join(labels)}: {figure} {goal}"
        if bound >= goal:
            how = f"at least {bound:.3f}, by entities of probability {least:.3f} or more"
            yield f"{figures} is reached on dev: {how}", ""
        else:
            yield f"{figures} can't be reached on dev; at best {bound:.3f}", "Annotate more texts, or lower the goal"
