"""Read a config as written; an error about a key names its line."""

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, DuplicateOptionError, DuplicateSectionError, InterpolationError, ParsingError
from configparser import MissingSectionHeaderError as NoBlockError
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
from thinc.api import Config
from thinc.config import VARIABLE_RE, ConfigValidationError

from labelwise.base.conflicts import check_edited
from labelwise.base.errors import InputError
from labelwise.base.removed import check_removed, has_key
from labelwise.train.training_config import default_config
from spacy_per_label.hub_files import SettingError
from spacy_per_label.operating_point import Figure

PATHS = frozenset({"paths.corpus", "paths.curve", "paths.resources"})
# The keys of a config that training may change.
FITTED = PATHS | {
    "nlp.lang",  # the merge's
    "nlp.tokenizer",  # where the merge's rules have a block
    "system.seed",
    "training.max_steps",
    "training.eval_frequency",
    "training.optimizer.learn_rate.total_steps",
    "training.batcher.size",  # the rule for few words
    "training.dropout",
    "corpora.train.limit",  # train-curve
    "corpora.train.leave_out",  # check-folds
    "corpora.train.folds",
    "components.ner.model.tok2vec.mixed_precision",  # false on the CPU
    "components.ner.model.tok2vec.grad_scaler_config.enabled",
    "components.transformer.model.mixed_precision",
    "components.transformer.model.grad_scaler_config.enabled",
}
NEEDED = (
    *("nlp.pipeline", "components", "corpora.train", "training.train_corpus", "training.dev_corpus"),
    *("training.max_steps", "training.patience", "training.eval_frequency", "training.batcher", "training.optimizer"),
)
GOALS = get_args(Figure)
QUOTED = re.compile(r"'([\w./@-]+)'")
PLACE = re.compile(r"^at \w+: ")  # of an alternative among types
SENTENCE_END = re.compile(r"(?<!\d)\. |\.$")  # numpy writes "982. GiB"


Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class LabelwiseBlock(msgspec.Struct, frozen=True):
    """The block `[labelwise]` of a config, with keys that spaCy lacks.

    epochs (int): length of a training, between `least_steps` and training.max_steps; 0 for training.max_steps.
    least_steps (int): see `epochs`.
    few_words (int): words of train below which the next two keys apply; 0 for never.
    few_batch (int): training.batcher.size then; 0 for the batcher's own.
    few_dropout (float | None): training.dropout then; None for the config's own.
    half_weights (bool): save a transformer's weights in fp16.
    precision, recall (float | dict | None): goal of the entities on dev, for all labels or by label.
    """

    epochs: int = 0
    least_steps: int = 0
    few_words: int = 0
    few_batch: int = 0
    few_dropout: float | None = None
    half_weights: bool = False
    precision: Share | dict[str, Share] | None = None
    recall: Share | dict[str, Share] | None = None


class ConfigFile(NamedTuple):
    """A config as written.

    raw (Config): values, without interpolation of variables, and without goals by label.
    goals (dict): labels' goals by figure. As values, spaCy would write them as a block, and cut labels at ":" or "=".
    """

    path: Path
    text: str
    raw: Config
    goals: Mapping[str, Mapping[str, Any]]

    def error(self, key: str, problem: str) -> InputError:
        """Return an error that names the line of a key or block, or of its parent block.

        key (str): dotted name, such as "training.dropout"; "" if unknown.
        """
        if not key:
            return InputError(f"{self.path}: {problem}")
        names, place = names_of(self.text), key
        while place and place not in names:
            place = place.rpartition(".")[0]
        line = self.text.splitlines()[names[place] - 1].strip() if place else ""
        block, _, name = key.rpartition(".")
        what = f"[{key}]" if line.startswith("[") and place == key else f"[{block}] {line if place == key else name}"
        return InputError(f"{self.path}{f':{names[place]}' if place else ''}: {what}: {problem}")

    def explain(self, error: Exception) -> InputError:
        """Convert an error of spaCy's registry or of a component to one that names the key, if the error does."""
        problem = SENTENCE_END.split(" ".join(str(error).split()))[0]  # then come all names there are
        if isinstance(error, SettingError):
            key = self.find_value(error.value, error.key)
            return self.error(key, error.problem if flatten(self.raw).get(key) == error.value else str(error))
        if isinstance(error, ConfigValidationError) and error.errors:
            report = min(error.errors, key=lambda one: "unexpected" not in one["msg"])
            key, problem = self.locate(*map(str, report["loc"])), PLACE.sub("", report["msg"])
        elif isinstance(error, MemoryError):  # numpy names the array's shape
            key = self.find_value(max(map(int, re.findall(r"\d+", problem)), default=inf))
        else:
            quoted, words = QUOTED.findall(problem), problem.split()  # a value, a key's name, or a component's
            keys = [self.find_value(word) or self.locate(word) for word in quoted]
            keys += [self.find_value(word) or f"components.{word}" for word in words]
            key = next((name for name in keys if has_key(self.raw, name)), "")
        return self.error(key, f"{problem}; correct it")

    def locate(self, *path: str) -> str:
        """Find a key by spaCy's location, which begins below the resolved block or with a factory: per_label.model."""
        place = ".".join(path).split(".")
        factories = {block.get("factory"): name for name, block in self.raw.get("components", {}).items()}
        *block, key = [factories.get(place[0], place[0]), *place[1:]] if len(place) > 1 else place
        ending = ".".join(["", *block]) if block else f".{key}"
        matching = [name for name in names_of(self.text) if f".{name}".endswith(ending)]
        nearest = min(matching, key=lambda name: name.count("."), default="")
        return f"{nearest}.{key}" if nearest and block else nearest

    def find_value(self, value: Any, key: str = "") -> str:
        """Find the first key with a value, in any block; "" without any.

        key (str): last part of its name, if known.
        """
        values = flatten(self.raw.interpolate()).items()
        return next(
            (name for name, other in values if other == value and f".{name}".endswith(f".{key}" * bool(key))), ""
        )

    def override(self, overrides: Mapping[str, Any]) -> Config:
        """Copy the values, with others for some keys.

        RAISES (InputError): if the config lacks a key.
        """
        settings = self.raw.copy()
        for key, value in overrides.items():
            *path, last = key.split(".")
            block: Any = settings
            for name in path:
                block = block.get(name) if isinstance(block, Mapping) else None
            if not isinstance(block, dict) or not (last in block or key in FITTED):
                raise InputError(f"{self.path}: {key} = {value!r}: the config has no such key; write it there")
            block[last] = value
        return settings


def read_config_file(path: Path) -> ConfigFile:
    """Read a config, and check blocks, keys and variables.

    RAISES (InputError): if the file is missing, can't be parsed, or has a removed key.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; give a spaCy config, such as {default_config('cpu')}")
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        text = path.read_text(encoding="utf8")
        check_edited(text.encode(), str(path))
        parser.read_string(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {error}; save it as UTF-8") from error
    except (DuplicateOptionError, DuplicateSectionError) as error:
        name = getattr(error, "option", f"[{error.section}]")
        raise InputError(f"{path}:{error.lineno}: {name}: repeated; delete one") from error
    except ParsingError as error:
        number = error.lineno if isinstance(error, NoBlockError) else error.errors[0][0]
        line = text.splitlines()[number - 1].strip()
        raise InputError(f"{path}:{number}: {line!r}: this is neither a [block] nor KEY = VALUE; correct it") from error
    file = ConfigFile(path, text, Config(), {})
    check_blocks(file, parser)
    check_variables(file, parser)
    try:
        raw = Config().from_str(text, interpolate=False)
        block = raw.get("labelwise", {})
        goals = {key: block.pop(key) for key in GOALS if isinstance(block.get(key), dict)}
        raw.interpolate()
    except InterpolationError as error:
        raise file.error(f"{error.section}.{error.option}", f"{error.message}; correct it") from error
    except ConfigValidationError as error:
        raise file.explain(error) from error
    check_removed(path, raw)
    for name in NEEDED:
        if not has_key(raw, name):
            problem = "this is missing; `python -m spacy init fill-config` writes what a config lacks"
            raise file.error(name, problem)
    return file._replace(raw=raw, goals=goals)


def check_blocks(file: ConfigFile, parser: ConfigParser) -> None:
    """Check that each block follows its parent block, and isn't a value, too."""
    blocks = parser.sections()
    for number, block in enumerate(blocks):
        above, _, name = block.rpartition(".")
        if not above or "*" in above.split("."):
            continue
        if above not in blocks[:number]:
            raise file.error(block, f"there is no block [{above}] above it; write one")
        if name in parser[above]:
            problem = f"[{above}] has {name} = {parser[above][name]}, too; delete that line, or this block"
            raise file.error(block, problem)


def check_variables(file: ConfigFile, parser: ConfigParser) -> None:
    """Check that variables, such as ${paths.corpus}, name a key or a block."""
    names = {*names_of(file.text)}
    for block in parser.sections():
        for key, value in parser[block].items():
            if value.count("${") != len([*variables_of(value)]):
                raise file.error(f"{block}.{key}", "a variable is written ${block.key}; correct it")
            for name in variables_of(value):
                if not {name, f"{block}.{name}"} & names:
                    raise file.error(f"{block}.{key}", f"there is no {name}; correct the name, or write it")


def variables_of(text: str) -> Iterator[str]:
    """Yield the names of variables in a text."""
    for variable in VARIABLE_RE.findall(text):
        yield variable[2:-1].replace(":", ".")


def names_of(text: str) -> dict[str, int]:
    """List the dotted names of blocks and keys of a config, with line numbers from 1."""
    names: dict[str, int] = {}
    block = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\[(.+)\]", line):
            block = match[1]
            names[block] = number
        elif match := re.match(r"([^\s#;=:][^=:]*?)\s*[=:]", line):
            names[f"{block}.{match[1]}"] = number
    return names


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """List the values of a config by dotted name; the tokenizer's block is one value."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        inside = isinstance(value, Mapping) and name != "nlp.tokenizer"
        values |= flatten(value, f"{name}.") if inside else {name: value}
    return values
