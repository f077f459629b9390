"""The training curve as a TSV file that `dvc plots` can draw: losses and scores by step, nothing that takes a clock."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language


class Curve:
    """Writes a line for each evaluation: step, epoch, words, one loss a component, and the scores that count.

        step    epoch   words   loss_tok2vec    loss_ner    score   ents_f  ents_p  ents_r
        200     3       412901  1034.51         4310.2      0.7121  0.7121  0.7304  0.6947

    The file is written as training goes on; `scripts.train` puts it in its place when training has ended well.
    """

    def __init__(self, nlp: Language, path: Path) -> None:
        """Open the file and write the header."""
        self.losses = [name for name, component in nlp.pipeline if getattr(component, "is_trainable", False)]
        weights = nlp.config["training"]["score_weights"]
        self.scores = sorted(name for name, weight in weights.items() if weight is not None)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("w", encoding="utf8")
        self._write(["step", "epoch", "words", *(f"loss_{name}" for name in self.losses), "score", *self.scores])

    def add(self, info: Mapping[str, Any]) -> None:
        """Add a line; `info` is what spaCy's training loop gives to loggers."""
        losses = [f"{info['losses'].get(name, 0.0):.6g}" for name in self.losses]
        scores = [f"{info['other_scores'].get(name) or 0.0:.4f}" for name in self.scores]
        self._write([info["step"], info["epoch"], info["words"], *losses, f"{info['score'] or 0.0:.4f}", *scores])

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def _write(self, fields: list[Any]) -> None:
        self.file.write("\t".join(map(str, fields)) + "\n")
        self.file.flush()
