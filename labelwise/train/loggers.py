"""The table and the bar that training shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from tqdm import tqdm
from wasabi import Printer

EMBEDDING = ("tok2vec", "transformer")  # components whose loss is but the size of a gradient


class ProgressTable:
    """Prints a row for each evaluation, and on a terminal a bar in between.

            E      #  LOSS NER  ENTS_F  ENTS_P  ENTS_R  WORDS/S     MB   LEFT
            0    100    3120.5    71.2    73.0    69.5    8,290    412  02:31

    What spaCy's own loop doesn't report, the last three columns, is left empty there. SKIPPED, of the gradient scaler,
    is there if it is in use. The curve has what a terminal of 80 characters has no room for: see `Curve`.
    """

    def __init__(self, nlp: Language, stdout: IO[str], stderr: IO[str]) -> None:
        """Take the pipeline, and what to write to."""
        self.stdout = stdout
        self.losses = [name for name in trained(nlp) if name not in EMBEDDING]
        training = nlp.config["training"]
        self.scores = [name for name, weight in training["score_weights"].items() if weight is not None]
        total = training["max_steps"] + 1 if training["max_steps"] else None
        # What tqdm expects goes by the first steps, which are slow; `seconds_left` has a basis.
        shown = ("{l_bar}{bar}| {n_fmt}/{total_fmt}" if total else "{n_fmt} steps") + " [{elapsed}{postfix}]"
        self.bar = tqdm(total=total, disable=None, leave=False, file=stderr, dynamic_ncols=True, bar_format=shown)
        self.printer = Printer(no_print=True)
        self.widths: list[int] = []

    def step(self, info: Mapping[str, Any] | None) -> None:
        """Move the bar, and at evaluations print a row."""
        self.bar.update(1)
        if info is None:
            return
        self.bar.n = info["step"] + 1  # a training that resumes doesn't begin at 0
        cells = {"E": f"{info['epoch']}", "#": f"{info['step']}"}
        cells |= {f"LOSS {name.upper()}": f"{info['losses'].get(name, 0.0):.1f}" for name in self.losses}
        cells |= {name.upper(): f"{100 * (info['other_scores'].get(name) or 0.0):.1f}" for name in self.scores}
        cells["WORDS/S"] = f"{info['words_per_second']:,.0f}" if "words_per_second" in info else ""
        cells["MB"] = f"{info['memory'] / 2**20:,.0f}" if "memory" in info else ""
        cells["LEFT"] = tqdm.format_interval(info["seconds_left"]) if info.get("seconds_left") is not None else ""
        if info.get("grad_scale") is not None:
            cells["SKIPPED"] = f"{info['skipped_steps']}"
        if not self.widths:
            self.widths = [max(len(name), 5) for name in cells]
            self._row(list(cells))
            self._row(["-" * width for width in self.widths])
        score, rate, memory, left = (cells.get(name, "") for name in ("ENTS_F", "WORDS/S", "MB", "LEFT"))
        then = f", {left} left" if left else ""
        self.bar.set_postfix_str(f"F {score}, {rate} words/s, {memory} MB{then}", refresh=False)
        self._row(list(cells.values()))

    def _row(self, cells: list[str]) -> None:
        row = self.printer.row(cells, widths=self.widths, spacing=2, aligns=["r"] * len(cells))
        with tqdm.external_write_mode(file=self.stdout):
            print(row, file=self.stdout, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        self.bar.close()


def trained(nlp: Language) -> list[str]:
    """List the components that are trained."""
    return [name for name, component in nlp.pipeline if getattr(component, "is_trainable", False)]


class Curve:
    """Writes a line for each evaluation: step, epoch, words, one loss per component, and the scores that count.

        step    epoch   words   loss_tok2vec    loss_ner    score   ents_f  ents_p  ents_r
        200     3       412901  1034.51         4310.2      0.7121  0.7121  0.7304  0.6947

    With a gradient scaler there are its scale, and the steps that it has skipped: grad_scale, skipped_steps. The file
    is written during training, and put in its place when that has ended well. One that is there already is continued.
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
