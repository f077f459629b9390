"""Train a pipeline with spaCy's own loop, from the partitions of a corpus, in a fixed amount of memory."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from spacy.util import load_config
from thinc.api import Config
from thinc.config import ConfigValidationError

import labelwise.registry  # noqa: F401  what the configs name
from labelwise.checkpoints import Checkpoints, copy
from labelwise.device import device_name, use_gpu
from labelwise.errors import InputError
from labelwise.loop import OnOom, Run
from labelwise.manifest import MANIFEST, check_whole
from labelwise.monitor import Monitor, idle_gpu, open_nvml
from labelwise.output import replace, staged, workspace
from labelwise.tokenizer import make_nlp, read_tokenizer

SOURCED = ("tok2vec", "transformer", "ner")


class Trained(NamedTuple):
    """What a training took.

    shares (dict[str, float]): of the time, by phase; the largest first.
    seconds (float): in the loop.
    peak (int): bytes of memory.
    words (int): of all batches.
    texts (dict[str, int]): what became of the texts in the last whole epoch, or in the first so far.
    halved (int): how often memory ran out and training went on.
    resumed (int | None): the step that it went on from; None if it began at the beginning.
    discarded (bool): there were checkpoints, but of another training.
    warning (str): why the GPU was idle, if it was.
    """

    shares: dict[str, float]
    seconds: float
    peak: int
    words: int
    texts: dict[str, int]
    halved: int
    resumed: int | None
    discarded: bool
    warning: str


def train(
    config: Path,
    corpus: Path,
    out: Path,
    curve: Path,
    *,
    resources: Path | None = None,
    gpu_id: int = -1,
    overrides: Mapping[str, Any] | None = None,
    init_from: str = "",
    batch_size: Path | None = None,
    on_oom: OnOom = "stop",
    resume: bool = False,
) -> Trained:
    """Train a pipeline; what stood at `out` stays until training has ended well.

    resources (Path | None): a TSV file for memory, processors and GPU over time.
    overrides (Mapping): values of the config, by dotted name.
    init_from (str): a pipeline to begin with, by name or folder; see `source_components`.
    batch_size (Path | None): what scripts.find_batch_size has written; used if it is of this device.
    on_oom (str): when memory runs out, "stop", or "halve" what the device is given, and go on.
    resume (bool): go on from the last checkpoint, if there is one of a training with the same config and corpus. They
        are in a folder beside `out`, and deleted when training has ended well.
    RAISES (InputError): the GPU can't be used, the corpus isn't whole, the config isn't valid, or memory ran out.
    """
    use_gpu(gpu_id)
    check_whole(corpus)
    settings = read_config(config, corpus, overrides or {})
    transformer = dict(settings["components"].get("transformer", {}).get("model", {}))
    if init_from:
        source_components(settings, init_from, corpus)
    if device_size := read_batch_size(batch_size, gpu_id, settings):
        settings["training"]["batcher"]["device_size"] = device_size
    checkpoints = Checkpoints(out.with_name(f"{out.name}.checkpoints"), fingerprint(settings, corpus, gpu_id))
    with workspace(out) as folder:
        folder.mkdir()
        found = checkpoints.last() if resume else None
        if found:
            copy(found[0] / "curve.tsv", folder / "curve.tsv")
        settings["paths"]["curve"] = str(folder / "curve.tsv")
        try:
            nlp = make_pipeline(settings, transformer, gpu_id)
        except ConfigValidationError as error:
            raise InputError(f"{config}: {error}") from error
        from_step = found[1].step if found else None
        discarded = resume and found is None and bool(checkpoints.all())
        if found is None:
            checkpoints.delete()
        monitor = Monitor(folder / "resources.tsv", open_nvml(gpu_id))
        run = Run(folder, monitor=monitor, checkpoints=checkpoints, resumed=found, on_oom=on_oom)
        with monitor, run.installed():
            try:
                spacy_train(nlp, folder, use_gpu=gpu_id)
            except Exception as error:
                # spaCy saves the pipeline even then, which can fail as well, and hide why.
                if run.failure:
                    raise run.failure from error
                raise
        tidy_pipeline(folder / "model-best", curve, nlp, transformer.get("precision", ""))
        for name, path in (("curve.tsv", curve), ("resources.tsv", resources)):
            if path:
                with staged(path) as temporary:
                    shutil.copyfile(folder / name, temporary)
        replace(folder / "model-best", out)
    checkpoints.delete()
    shares = run.clock.shares()
    return Trained(
        shares=shares,
        seconds=run.state.seconds,
        peak=monitor.peak,
        words=run.state.words,
        texts=dict(getattr(run.corpus, "last_counts", {}) or getattr(run.corpus, "counts", {})),
        halved=run.state.halved,
        resumed=from_step,
        discarded=discarded,
        warning=idle_gpu(monitor.gpu_percent(), shares),
    )


def read_config(config: Path, corpus: Path, overrides: Mapping[str, Any]) -> Config:
    """Read a config, and fit it to a corpus.

    RAISES (InputError): the config needs a package that isn't there.
    """
    lang, _ = read_tokenizer(corpus / "tokenizer.json")
    overrides = {**overrides, "paths.corpus": str(corpus), "nlp.lang": lang}
    try:
        settings = load_config(config, overrides, interpolate=False)
    except (ConfigValidationError, ValueError) as error:
        raise InputError(f"{config}: {error}") from error
    if "transformer" in settings["nlp"]["pipeline"] and find_spec("spacy_transformers") is None:
        raise InputError(f"{config} needs spacy-transformers; use the environment of `make gpu`")
    return settings


def source_components(settings: Config, init_from: str, corpus: Path) -> None:
    """Take tok2vec, transformer and ner from a pipeline, those of them that both have; in place.

    Its ner is taken if all its labels are the corpus's, as it would go on to predict the others, and with what it
    listens to alone.

    RAISES (InputError): there is no such pipeline, or it has none of the components.
    """
    import spacy

    try:
        source = spacy.load(init_from)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"init_from {init_from!r}: {error}") from error
    labels = set(json.loads((corpus / MANIFEST).read_text(encoding="utf8"))["labels"])
    names = [name for name in SOURCED if name in source.pipe_names and name in settings["nlp"]["pipeline"]]
    embeddings = {"tok2vec", "transformer"} & set(source.pipe_names)
    if "ner" in names:
        known = set(source.get_pipe("ner").labels)  # type: ignore[attr-defined]
        if not (known <= labels and embeddings <= set(names)):
            names.remove("ner")
    if not names:
        raise InputError(
            f"init_from {init_from!r}: it has {source.pipe_names}, of which none can be taken into a pipeline of "
            f"{settings['nlp']['pipeline']}; its ner only with what it listens to, and if the corpus has all its labels"
        )
    listener = settings["components"]["ner"].get("model", {}).get("tok2vec", {})
    if "width" in listener and "tok2vec" in names and "ner" not in names:
        listener["width"] = source.get_pipe("tok2vec").model.get_dim("nO")  # type: ignore[attr-defined]
    for name in names:
        settings["components"][name] = {"source": init_from}
    if "ner" in names:
        settings["initialize"]["components"].pop("ner", None)


def make_pipeline(settings: Config, transformer: Mapping[str, Any], gpu_id: int) -> Language:
    """Make and initialize a pipeline.

    transformer (Mapping): the block of the transformer's model before one was taken from another pipeline, which is
        then trained in the precision of this block.
    RAISES (ConfigValidationError): the config isn't valid.
    """
    nlp = init_nlp(settings, use_gpu=gpu_id)
    add_labels(nlp)
    if "precision" in transformer and "source" in settings["components"]["transformer"]:
        from labelwise.precision import set_precision

        sourced: Any = nlp.get_pipe("transformer")
        set_precision(sourced.model, transformer["precision"], transformer["grad_scaler_config"])
    return nlp


def add_labels(nlp: Language) -> None:
    """Add the corpus's labels that a sourced ner lacks, in alphabetical order."""
    labels = Path(nlp.config.interpolate()["paths"]["corpus"]) / "labels" / "ner.json"
    ner: Any = nlp.get_pipe("ner")
    for label in sorted({name for by_label in json.loads(labels.read_text()).values() for name in by_label} - {""}):
        if label not in ner.labels:
            ner.add_label(label)


def read_batch_size(path: Path | None, gpu_id: int, settings: Config) -> int:
    """Read what scripts.find_batch_size has found; 0 if there is nothing, or it is of another device or pipeline."""
    if path is None or not path.is_file():
        return 0
    found = json.loads(path.read_text(encoding="utf8"))
    same = found["device"] == device_name(gpu_id) and found["pipeline"] == pipeline_digest(settings)
    return found["size"] if same else 0


def pipeline_digest(settings: Config) -> str:
    """Give what is the same for pipelines that need the same memory."""
    parts = [settings["components"], settings["training"]["batcher"].get("unit")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def fingerprint(settings: Config, corpus: Path, gpu_id: int) -> str:
    """Give what is the same for trainings that make the same steps: by config, corpus, code, packages and device.

    What the device is given at a time isn't in it, which is what to change when memory has run out.
    """
    settings = settings.copy()
    settings["training"]["batcher"].pop("device_size", None)
    packages = ["spacy", "thinc", "numpy", "torch", "transformers", "spacy_transformers"]
    parts = [settings.to_str(interpolate=False), (corpus / MANIFEST).read_text(encoding="utf8"), device_name(gpu_id)]
    parts += [f"{name} {version(name)}" for name in packages if find_spec(name)]
    parts += [path.read_text(encoding="utf8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def tidy_pipeline(folder: Path, curve: Path, nlp: Language, precision: str) -> None:
    """Make a saved pipeline one that holds nothing of its training. Its files get new ones: checkpoints have the old.

    Equal trainings give equal bytes: spaCy saves scores in a set's order, and where the curve was being written. It
    loads without labelwise. And it doesn't have the words of the texts, which spaCy saves with the vocabulary, and
    which may be nobody else's business; the model knows hashes only.
    """
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    meta["performance"] = sorted_deeply(meta["performance"])
    rewrite(folder / "meta.json", json.dumps(meta, indent=2, ensure_ascii=False))
    config = load_config(folder / "config.cfg", interpolate=False)
    config["paths"]["curve"] = str(curve)
    if precision:
        from labelwise.precision import as_saved

        as_saved(config["components"]["transformer"]["model"], precision)
    rewrite(folder / "config.cfg", config.to_str())
    if not nlp.vocab.vectors.size:
        lang, rules = read_tokenizer(Path(config.interpolate()["paths"]["corpus"]) / "tokenizer.json")
        strings = {*make_nlp(lang, rules).vocab.strings, *nlp.get_pipe("ner").labels}  # type: ignore[attr-defined]
        rewrite(folder / "vocab" / "strings.json", json.dumps(sorted(strings), ensure_ascii=False))


def rewrite(path: Path, text: str) -> None:
    """Write a file anew, rather than into one that may have another name elsewhere."""
    path.unlink()
    path.write_text(text, encoding="utf8")


def sorted_deeply(value: Any) -> Any:
    """Copy nested dicts with their keys in alphabetical order."""
    return {key: sorted_deeply(value[key]) for key in sorted(value)} if isinstance(value, dict) else value
