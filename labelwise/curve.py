"""The training curve as a TSV file that `dvc plots` can draw: losses and scores by step, nothing that takes a clock."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language

from labelwise.progress import trained


class Curve:
    """Writes a line for each evaluation: step, epoch, words, one loss a component, and the scores that count.

        step    epoch   words   loss_tok2vec    loss_ner    score   ents_f  ents_p  ents_r
        200     3       412901  1034.51         4310.2      0.7121  0.7121  0.7304  0.6947

    With a gradient scaler there are its scale, and the steps that it has skipped: grad_scale, skipped_steps. The file
    is written as training goes on, and put in its place when that has ended well. One that is there is gone on with.
    """

    def __init__(self, nlp: Language, path: Path) -> None:
        """Take the path."""
        self.losses = trained(nlp)
        weights = nlp.config["training"]["score_weights"]
        self.scores = sorted(name for name, weight in weights.items() if weight is not None)
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, info: Mapping[str, Any]) -> None:
        """Add a line; `info` is what spaCy's training loop gives to loggers."""
        losses = {f"loss_{name}": f"{info['losses'].get(name, 0.0):.6g}" for name in self.losses}
        scores = {name: f"{info['other_scores'].get(name) or 0.0:.4f}" for name in self.scores}
        line = {name: info[name] for name in ("step", "epoch", "words")}
        line |= {**losses, "score": f"{info['score'] or 0.0:.4f}", **scores}
        if info.get("grad_scale") is not None:
            line |= {"grad_scale": f"{info['grad_scale']:g}", "skipped_steps": info["skipped_steps"]}
        new = not self.path.exists()
        with self.path.open("a", encoding="utf8") as file:
            for fields in ([line.keys()] if new else []) + [line.values()]:
                file.write("\t".join(map(str, fields)) + "\n")
