"""Read a config as written; refuse, with its line, a key that training wouldn't use as spaCy does."""

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, DuplicateOptionError, DuplicateSectionError, InterpolationError, ParsingError
from configparser import MissingSectionHeaderError as NoBlockError
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
import spacy
from pydantic import ValidationError
from spacy.schemas import ConfigSchema, ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from spacy.util import dot_to_object
from thinc.api import Config
from thinc.config import VARIABLE_RE, ConfigValidationError

from labelwise.base.conflicts import check_edited
from labelwise.base.errors import InputError
from labelwise.base.removed import check_removed, has_key
from labelwise.train.dev_scores import SCORES
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.training_config import default_config
from spacy_per_label.hub_files import SettingError
from spacy_per_label.operating_point import Figure

SCORER = {"@scorers": "spacy.ner_scorer.v1"}  # the default of both recognizers
SEED = "${system.seed}"
UNSUPPORTED = ("frozen_components", "annotating_components", "before_to_disk", "before_update")
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
WHOLE = ("nlp.tokenizer", *(f"labelwise.{key}" for key in GOALS))  # the keys of goals are labels
READ = PATHS | {"system.seed", "system.gpu_allocator"}  # of blocks that only have variables
# Least and largest numbers, by the last part of a key in any block; beyond them, layers fail without naming the key, or
# nothing is learned. A schedule's numbers have the range of its key, except those of STEPS.
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("width", "depth", "rows", "hidden_width", "maxout_pieces", "batch_size"), (1, inf)),
    **dict.fromkeys(("size", "buffer", "eval_frequency", "accumulate_gradient"), (1, inf)),
    **dict.fromkeys(("stride", "max_batch_items", "init_scale", "growth_interval"), (1, inf)),
    **dict.fromkeys(("window_size", "context", "layers", "limit", "max_words", "leave_out", "folds"), (0, inf)),
    **dict.fromkeys(("max_steps", "patience", "epochs", "least_steps", "few_words", "few_batch"), (0, inf)),
    **dict.fromkeys(("tolerance", "grad_clip", "score_weights"), (0, inf)),
    **dict.fromkeys(("learn_rate", "rate", "L2", "dropout", "few_dropout"), (0, 1)),
    **dict.fromkeys(("beta1", "beta2"), (0.001, 0.99999)),
    "eps": (1e-16, 1),  # with 0, a weight without gradient would become 0 / 0
}
STEPS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("total_steps", "num_steps", "period"), (1, inf)),
    **dict.fromkeys(("warmup_steps", "steps", "t", "compound"), (0, inf)),
    **dict.fromkeys(("warmup", "decay"), (0, 1)),
}
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


SCHEMAS: dict[str, Any] = {"nlp": ConfigSchemaNlp, "training": ConfigSchemaTraining, "initialize": ConfigSchemaInit}
BLOCKS: dict[str, Any] = {name: schema.model_fields for name, schema in SCHEMAS.items()}
BLOCKS["labelwise"] = LabelwiseBlock.__struct_fields__


class ConfigFile(NamedTuple):
    """A config as written.

    raw (Config): values, without interpolation of variables.
    """

    path: Path
    text: str
    raw: Config

    def error(self, key: str, problem: str) -> InputError:
        """Return an error that names the line of a dotted key, such as "training.dropout", of its block, or its parent
        block.
        """
        return refuse(self.path, self.text, key, problem)

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
    check_blocks(path, text, parser)
    check_variables(path, text, parser)
    try:
        raw = Config().from_str(text, interpolate=False)
        raw.interpolate()
    except InterpolationError as error:
        raise refuse(path, text, f"{error.section}.{error.option}", f"{error.message}; correct it") from error
    except ConfigValidationError as error:
        raise ConfigFile(path, text, Config()).explain(error) from error
    check_removed(path, raw)
    for name in NEEDED:
        if not has_key(raw, name):
            problem = "this is missing; `python -m spacy init fill-config` writes what a config lacks"
            raise refuse(path, text, name, problem)
    return ConfigFile(path, text, raw)


def check_blocks(path: Path, text: str, parser: ConfigParser) -> None:
    """Check that each block follows its parent block, and isn't a value, too."""
    blocks = parser.sections()
    for number, block in enumerate(blocks):
        above, _, name = block.rpartition(".")
        if not above or "*" in above.split("."):
            continue
        if above not in blocks[:number]:
            raise refuse(path, text, block, f"there is no block [{above}] above it; write one")
        if name in parser[above]:
            problem = f"[{above}] has {name} = {parser[above][name]}, too; delete that line, or this block"
            raise refuse(path, text, block, problem)


def check_variables(path: Path, text: str, parser: ConfigParser) -> None:
    """Check that variables, such as ${paths.corpus}, name a key or a block."""
    names = {*names_of(text)}
    for block in parser.sections():
        for key, value in parser[block].items():
            if value.count("${") != len([*variables_of(value)]):
                raise refuse(path, text, f"{block}.{key}", "a variable is written ${block.key}; correct it")
            for name in variables_of(value):
                if not {name, f"{block}.{name}"} & names:
                    raise refuse(path, text, f"{block}.{key}", f"there is no {name}; correct the name, or write it")


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


def refuse(path: Path, text: str, key: str, problem: str) -> InputError:
    """Return an error about a key or a block of a config; see `ConfigFile.error`."""
    if not key:
        return InputError(f"{path}: {problem}")
    names, place = names_of(text), key
    while place and place not in names:
        place = place.rpartition(".")[0]
    line = text.splitlines()[names[place] - 1].strip() if place else ""
    block, _, name = key.rpartition(".")
    what = f"[{key}]" if line.startswith("[") and place == key else f"[{block}] {line if place == key else name}"
    return InputError(f"{path}{f':{names[place]}' if place else ''}: {what}: {problem}")


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """List the values of a config by dotted name; each block of WHOLE is one value."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        inside = isinstance(value, Mapping) and name not in WHOLE
        values |= flatten(value, f"{name}.") if inside else {name: value}
    return values


def check_supported(file: ConfigFile, settings: Config) -> None:
    """Check that training uses each key of a config, and as `spacy train` does.

    settings (Config): values, with overrides, interpolated.
    RAISES (InputError): if a key isn't used, or isn't supported.
    """
    for name, known in BLOCKS.items():
        if unknown := settings.get(name, {}).keys() - {*known}:
            problem = f"the block has no such key; its keys are {', '.join(sorted(known))}"
            raise file.error(f"{name}.{min(unknown)}", problem)
    check_types(file)
    training, nlp, components = settings["training"], settings["nlp"], settings["components"]
    if "ner" not in nlp["pipeline"]:
        raise file.error("nlp.pipeline", "the recognizer is the component ner; add it")
    for name in nlp["pipeline"]:
        if name not in components:
            raise file.error("nlp.pipeline", f"there is no [components.{name}]; write it, or delete {name} here")
    for name, block in components.items():
        for key, default in (("source", None), ("scorer", SCORER)):
            if block.get(key, default) != default:
                raise file.error(f"components.{name}.{key}", "training doesn't use it; delete it")
        if name in nlp.get("disabled", ()) and "model" in block:
            raise file.error("nlp.disabled", f"training needs {name}; delete it here")
    if training.get("seed", 0) != settings.get("system", {}).get("seed", 0):
        raise file.error("training.seed", f"the seed is that of [system]; write seed = {SEED}")
    for name in UNSUPPORTED:
        if training.get(name):
            raise file.error(f"training.{name}", "only `spacy train` uses this; delete it, or train with that")
    for name, weight in training.get("score_weights", {}).items():
        if weight and name not in SCORES:
            problem = f"the score isn't computed; write null, or a weight for {', '.join(SCORES)}"
            raise file.error(f"training.score_weights.{name}", problem)
    if training.get("logger", {}).get("@loggers", "spacy.").startswith("spacy."):
        problem = 'it writes no curve; write @loggers = "labelwise.Logger.v1", and path = ${paths.curve}'
        raise file.error("training.logger.@loggers", problem)
    if training["train_corpus"] != "corpora.train":
        raise file.error("training.train_corpus", 'training reads [corpora.train]; write "corpora.train"')
    if not has_key(settings, dev := training["dev_corpus"]):
        raise file.error("training.dev_corpus", f"there is no block [{dev}]; write one")
    for name in ("corpora.train", dev):
        reader = dot_to_object(settings, name).get("@readers", "")
        function = spacy.registry.readers.get(reader) if reader in spacy.registry.readers else None
        if not (isinstance(function, type) and issubclass(function, PartitionedCorpus)):
            problem = 'only this reader can resume a training; write @readers = "labelwise.PartitionedCorpus.v1"'
            raise file.error(f"{name}.@readers", problem)
    check_arguments(file, settings)
    check_unused(file, settings)


def check_types(file: ConfigFile) -> None:
    """Check the ranges of numbers, and the types of spaCy's keys, except for registered functions."""
    settings = file.raw.interpolate()
    for key, value in (*flatten(file.raw).items(), *flatten(settings).items()):
        *_, block, name = ("", *key.split("."))
        least, most = STEPS.get(name) or RANGES.get(block) or RANGES.get(name, (-inf, inf))
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not (abs(number) < inf and least <= number <= most):
                bounds = f" from {least}" * (least > -inf) + f" to {most}" * (most < inf)
                raise file.error(key, f"give a {'number' if bounds else 'finite number'}{bounds}")
    for name, schema in SCHEMAS.items():
        values = {key: value for key, value in settings.get(name, {}).items() if not spacy.registry.is_promise(value)}
        try:
            schema.model_validate(values)
        except ValidationError as error:
            for detail in error.errors():
                keys = (".".join(map(str, [name, *detail["loc"][:depth]])) for depth in (2, 1))
                if detail["type"] != "missing":  # spaCy adds what a config lacks
                    key = next(key for key in keys if has_key(settings, key))
                    raise file.error(key, f"{detail['msg']}; correct it") from error


def check_arguments(file: ConfigFile, settings: Config) -> None:
    """Check the arguments of registered functions, if training reads them before spaCy calls the functions."""
    for name in ("corpora", "training"):
        try:
            spacy.registry.fill(settings[name])
        except ConfigValidationError as error:
            raise file.explain(error) from error


def check_unused(file: ConfigFile, settings: Config) -> None:
    """Check that each block or variable of a config is used; spaCy wouldn't notice.

    RAISES (InputError): if training doesn't read one.
    """
    pretraining, weights = settings.get("pretraining", {}), settings.get("initialize", {}).get("init_tok2vec")
    if weights and not pretraining:
        problem = "the weights are for the layer that [pretraining] names; write that block, or init_tok2vec = null"
        raise file.error("initialize.init_tok2vec", problem)
    if weights and not Path(weights).is_file():
        problem = "there is no such file; `python -m spacy pretrain` writes it; or write init_tok2vec = null"
        raise file.error("initialize.init_tok2vec", problem)
    if pretraining and not weights:
        raise file.error(
            "pretraining", "training reads it for [initialize] init_tok2vec; set that, or delete the block"
        )
    pipeline, referred = settings["nlp"]["pipeline"], {*variables_of(file.text)}
    corpora = {settings["training"]["train_corpus"], settings["training"]["dev_corpus"], pretraining.get("corpus")}
    parts = {f"components.{name}": name in pipeline for name in settings["components"]}
    arguments = settings.get("initialize", {}).get("components", {})
    parts |= {f"initialize.components.{name}": name in pipeline for name in arguments}
    parts |= {f"corpora.{name}": f"corpora.{name}" in corpora for name in settings["corpora"]}
    variables = {name: block for name, block in settings.items() if name not in (*BLOCKS, *ConfigSchema.model_fields)}
    parts |= {key: key in READ for key in flatten(variables)}
    for part, used in parts.items():
        if not used and not any(f"{one}.".startswith(f"{part}.") or part.startswith(f"{one}.") for one in referred):
            raise file.error(part, "training reads nothing of this; delete it, or correct the name")
