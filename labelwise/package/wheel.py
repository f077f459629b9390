"""Make an installable wheel of a pipeline, with scores and a model card.

It needs spaCy (with a transformer, spacy-transformers), and the recognizer's separate distribution, `spacy_per_label`,
whose wheel is put beside it. On the CPU it multiplies by numpy, as in training and evaluation, independent of thinc's
ops: the same predictions, to the bit, and faster than thinc's (docs/scale.md).
"""

import json
import re
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.metadata import version as installed
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec
from spacy.language import Language

import spacy_per_label
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, check_replaceable
from labelwise.base.sections import DEFAULT_TARGET_F1, PackageName
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.pipeline import check_tokens, load_pipeline, strings_of
from labelwise.corpus.record import read_raw
from labelwise.corpus.tokenizer import packages_of
from labelwise.evaluate.results import check_evaluated, load_results
from labelwise.evaluate.scores import Metrics
from labelwise.package.card import write_card

CARD = "README.md"
LABEL = 8  # digits of a digest in a version's local label
WHEEL = "Wheel-Version: 1.0\nGenerator: labelwise\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
INIT = '''"""A pipeline of spaCy; README.md says what it is."""

from pathlib import Path

from spacy.util import get_model_meta, load_model_from_init_py
from thinc.api import NumpyOps, get_current_ops, use_ops

__version__ = get_model_meta(Path(__file__).parent)["version"]


def load(**overrides):
    """Load the pipeline; on the CPU numpy multiplies its matrices, which is faster than thinc's own way.

    A GPU's ops stay, as do those for Apple's processors.
    """
    if type(get_current_ops()) is not NumpyOps:
        return load_model_from_init_py(__file__, **overrides)
    with use_ops("numpy", use_blis=False):
        return load_model_from_init_py(__file__, **overrides)
'''


def make_package(
    root: Path, pipeline: str, out: Path, identity: PackageName, target_f1: float = DEFAULT_TARGET_F1
) -> Path:
    """Package the best pipeline in a folder, replacing it, with its card, README.md.

    root (Path): project folder, with training/PIPELINE/model-best, metrics/ and corpus/.
    target_f1 (float): minimum lower bound of a ready label's F1 interval.
    RAISES (InputError): if an input is missing, or belongs to another pipeline or corpus.
    """
    check_replaceable(out, (CARD,), "package")
    model, corpus = root / "training" / pipeline / "model-best", root / "corpus"
    nlp, manifest = load_recognizer(model, corpus), read_manifest(corpus)
    metrics, merge, digest, *_ = load_results(root, pipeline)
    if not merge.texts:
        raise InputError(f"{root / 'metrics/merge.json'}: there are no counts of the merge; run the merge")
    check_evaluated(root, pipeline, metrics)
    labels = nlp.get_pipe("ner").labels  # type: ignore[attr-defined]
    if lacking := set(labels) - metrics.all_gold.labels.keys():
        raise InputError(
            f"{root / 'metrics'}: there are no scores of the label {min(lacking)!r}; evaluate {pipeline} again"
        )
    meta = describe(nlp, identify(identity, pipeline, metrics.pipeline_digest), metrics)
    card = write_card(nlp, meta, metrics, merge, digest, manifest, target_f1, read_raw(model))
    with atomic(out, folders=[out]) as [folder]:
        folder.mkdir()
        name = f"{meta['lang']}_{meta['name']}"
        files = pipeline_files(name, model, corpus, meta, nlp) | {f"{name}/{name}-{meta['version']}/{CARD}": card}
        required = [f"Requires-Dist: {one}" for one in (f"spacy{meta['spacy_version']}", *meta["requirements"])]
        about = {**meta, "name": name, "requires-python": ">=3.11", "readme": card}
        wheel = write_wheel(folder, about, required, files, {"spacy_models": {name: name}})
        if any(requirement.startswith("spacy-per-label") for requirement in meta["requirements"]):
            build_recognizer(folder)
        (folder / CARD).write_text(card, encoding="utf8")
    return out / wheel


def load_recognizer(model: Path, corpus: Path) -> Language:
    """Load a pipeline trained on a corpus.

    RAISES (InputError): if there is no pipeline, no recognizer named "ner", or its tokens differ from the corpus.
    """
    nlp = load_pipeline(model)
    if "ner" not in nlp.pipe_names:
        raise InputError(f"{model}: it has no recognizer named ner, but {', '.join(nlp.pipe_names) or 'nothing'}")
    check_tokens(nlp, corpus / "test", "run all again: packages have changed")
    return nlp


def identify(identity: PackageName, pipeline: str, digest: str) -> PackageName:
    """Return name and version of a pipeline's package, unique in the project.

    pip keeps an installed package of the same version, so the version has the model's digest as its local label. A
    letter precedes the digest: a label of digits would lose its leading zeros.

    RAISES (InputError): if the pipeline's name has no letter or digit for a package name.
    """
    name = identity.name if pipeline == "cpu" else re.sub("[^a-z0-9]+", "_", f"{identity.name}_{pipeline}".lower())
    local = f"{'.' if '+' in identity.version else '+'}m{digest[:LABEL]}"
    return msgspec.structs.replace(identity, name=name, version=identity.version + local)


def describe(nlp: Language, identity: PackageName, metrics: Metrics) -> dict[str, Any]:
    """Return the meta.json of a package: spaCy's, with package name, scores and requirements."""
    scores = metrics.all_gold
    by_label = {name: {"p": own.p, "r": own.shown().r, "f": own.shown().f} for name, own in scores.labels.items()}
    # What the tokenizer needs is the version whose words the pipeline has learned.
    requirements = [f"{name}=={installed(name)}" for name in packages_of(nlp.config["nlp"]["tokenizer"])]
    architectures, extra = str(nlp.config["components"]), ""
    if "spacy-per-label.Transformer." in architectures:
        requirements.append(f"spacy-transformers>={installed('spacy-transformers')}")
    if "spacy-per-label.SmallTransformer.v1" in architectures:
        extra = "[int8,small]" if "'int8': True" in architectures else "[small]"  # Hugging Face's tokenizers
    if "spacy-per-label" in architectures:
        requirements.append(f"spacy-per-label{extra}>={spacy_per_label.__version__}")
    performance = {"ents_p": scores.p, "ents_r": scores.r, "ents_f": scores.f, "ents_per_type": by_label}
    own = {"performance": performance, "requirements": requirements}
    return nlp.meta | msgspec.structs.asdict(identity) | own


def pipeline_files(name: str, model: Path, corpus: Path, meta: dict[str, Any], nlp: Language) -> dict[str, str | Path]:
    """List the files of a pipeline's package, as in `spacy package`, without words or local paths.

    Of the model's folder, these are the files that spaCy saves and loads: folders, and sentencizer.json.
    """
    data, about = f"{name}/{name}-{meta['version']}", json.dumps(meta, indent=2, ensure_ascii=False)
    component_files = (file for component in nlp.component_names for file in (component, f"{component}.json"))
    saved = (model / part for part in ("tokenizer", "vocab", *component_files))
    paths = (path for part in saved for path in (part, *part.rglob("*")) if path.is_file())
    files: dict[str, str | Path] = {f"{data}/{path.relative_to(model).as_posix()}": path for path in paths}
    config = nlp.config.copy()
    config["paths"] = dict.fromkeys(config["paths"])
    # The tokenizer, in the block nlp, needs its paths.
    config |= {name: shorten_paths(block) for name, block in config.items() if name != "nlp"}
    if not nlp.vocab.vectors.size:
        strings = strings_of(corpus, chain.from_iterable(nlp.pipe_labels.values()))
        files[f"{data}/vocab/strings.json"] = json.dumps(strings, ensure_ascii=False)
    rewritten = {f"{data}/config.cfg": config.to_str(), f"{data}/meta.json": about, f"{name}/meta.json": about}
    return files | rewritten | {f"{name}/__init__.py": INIT}


def shorten_paths(value: Any) -> Any:
    """Shorten absolute paths in a config's value, such as a transformer's folder, to their last part."""
    if isinstance(value, dict):
        return {key: shorten_paths(inner) for key, inner in value.items()}
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value


def build_recognizer(folder: Path) -> None:
    """Write the wheel of `spacy_per_label` by its installed pyproject.toml.

    Its version has a digest of the code as its local label; see `identify`.
    """
    source = Path(spacy_per_label.__file__).parent
    content = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf8"))
    project, data = content["project"], content["tool"]["setuptools"]["package-data"]["spacy_per_label"]
    files = {f"spacy_per_label/{path.name}": path for path in (*source.glob("*.py"), *(source / name for name in data))}
    digests = sorted(sha256(name.encode() + path.read_bytes()).digest() for name, path in files.items())
    required = [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        required += [
            f"Provides-Extra: {extra}",
            *(f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in packages),
        ]
    version = f"{spacy_per_label.__version__}+c{sha256(b''.join(digests)).hexdigest()[:LABEL]}"
    about = project | {"version": version, "readme": (source / project["readme"]).read_text(encoding="utf8")}
    write_wheel(folder, about, required, files, project["entry-points"])


def write_wheel(
    folder: Path,
    about: Mapping[str, Any],
    required: Iterable[str],
    files: Mapping[str, str | Path],
    entry_points: Mapping[str, Mapping[str, str]],
) -> str:
    """Write a wheel; equal files give equal bytes (packaging.python.org, Binary distribution format).

    about (Mapping): name, version, license, description, requires-python, and readme text.
    required (Iterable[str]): requirements, lines of METADATA.
    files (Mapping): content by path.
    entry_points (Mapping): objects by name, by group.
    RETURNS (str): name of the wheel.
    """
    stem = f"{about['name'].replace('-', '_')}-{about['version']}"
    lines = ["Metadata-Version: 2.1", f"Name: {about['name']}", f"Version: {about['version']}"]
    lines += [f"Summary: {' '.join(about['description'].split())}", f"License: {about['license']}"]
    lines += [f"Requires-Python: {about['requires-python']}", "Description-Content-Type: text/markdown", *required]
    groups = (
        "".join([f"[{group}]\n", *(f"{n} = {to}\n" for n, to in own.items())]) for group, own in entry_points.items()
    )
    contents: dict[str, str | Path] = {
        **files,
        f"{stem}.dist-info/METADATA": "\n".join([*lines, "", about["readme"]]),
        f"{stem}.dist-info/WHEEL": WHEEL,
        f"{stem}.dist-info/entry_points.txt": "".join(groups),
    }
    record: list[str] = []
    with ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for path, content in sorted(contents.items()):
            data = content.read_bytes() if isinstance(content, Path) else content.encode()
            archive.writestr(ZipInfo(path), data, ZIP_DEFLATED)  # dated 1980
            digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
        path = f"{stem}.dist-info/RECORD"
        archive.writestr(ZipInfo(path), "".join([*record, f"{path},,\n"]), ZIP_DEFLATED)
    return f"{stem}-py3-none-any.whl"
