"""Put a pipeline into an installable wheel, with scores, digests and a model card.

It needs spaCy (and spacy-transformers, if it has a transformer), and the recognizer, `spacy_per_label`, a package that
several pipelines share, whose wheel is put beside it. On the CPU its matrices are multiplied by numpy, as in training
and evaluation here, whatever thinc's ops are otherwise: the same predictions, to the bit, and faster than with thinc's
own (docs/scale.md).
"""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec
from spacy.util import load_config

import spacy_per_label
from labelwise.corpus.manifest import Manifest, read_manifest
from labelwise.corpus.pipeline import strings_of
from labelwise.corpus.seen_texts import SEEN_TEXTS
from labelwise.errors import InputError
from labelwise.evaluate.ranking import SHIP_AT, Verdict
from labelwise.evaluate.results import Results, load_results
from labelwise.files import check_replaceable, digest_folder, staged
from labelwise.package.card import label_verdicts, write_card
from labelwise.package.contents import Contents, inspect_contents, is_folder

CARD = "README.md"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
VERSION = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){0,3}((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?"
)  # PEP 440, as pip writes it
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
RECOGNIZER = {
    "name": "spacy_per_label",
    "version": spacy_per_label.__version__,
    "description": "A named-entity recognizer with a head for each label, which learns from partial annotation",
    "license": "MIT",
    "spacy_version": ">=3.8,<3.9",
    "requirements": [],
}
ENTRY_POINTS = {
    "spacy_factories": {"per_label": "spacy_per_label.component:make_per_label"},
    "spacy_architectures": {
        "spacy-per-label.Heads.v1": "spacy_per_label.model:make_heads",
        "spacy-per-label.Transformer.v1": "spacy_per_label.transformer:make_transformer",
        "spacy-per-label.WordEmbed.v1": "spacy_per_label.words:make_word_embed",
    },
}


class Package(NamedTuple):
    """The file that was made, what the pipeline in it has, and which labels may be used: "ship", "hold", "unknown"."""

    wheel: Path
    contents: Contents
    verdicts: dict[Verdict, list[str]]


class PackageName(msgspec.Struct, frozen=True):
    """What a package is called: the section `package` of project.yml.

    name (str): without the language, which spaCy puts before it.
    license (str): an identifier, such as mit, that the hub knows; empty for none.
    description (str): what it is for; empty if there is nothing to say.
    """

    name: str = "ner"
    version: str = "0.1.0"
    license: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        """Check that a package can be called that.

        RAISES (InputError): it can't.
        """
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"name: {self.name!r}: write small letters, digits and single underscores, such as ner_lab"
            )
        if not VERSION.fullmatch(self.version):
            raise InputError(f"version: {self.version!r}: write it as pip does, such as 1.0.0 or 2.1.0rc1")


def make_package(root: Path, pipeline: str, out: Path, identity: PackageName, ship_at: float = SHIP_AT) -> Package:
    """Put the best pipeline into a wheel, in a folder that is replaced as a whole, beside its card, README.md.

    root (Path): the project's folder: it has training/PIPELINE/model-best, metrics/ and corpus/.
    pipeline (str): "cpu" or "gpu".
    ship_at (float): what the lower end of a label's interval of F1 must reach for it to be used.
    RAISES (InputError): something of that isn't there, or belongs to another pipeline or corpus.
    """
    check_replaceable(out, (CARD,), "package")
    model, corpus = root / "training" / pipeline / "model-best", root / "corpus"
    contents, manifest = inspect_contents(model, corpus), read_manifest(corpus)
    results = load_results(root, pipeline)
    if results.metrics is None or results.merge is None:
        raise InputError(f"{root / 'metrics'}: there are no scores of the pipeline; run evaluate-{pipeline}")
    if results.metrics.pipeline_digest != digest_folder(model):
        raise InputError(f"{root / 'metrics'}: its scores are of another pipeline; run evaluate-{pipeline} again")
    if results.metrics.texts_digest != manifest.splits["test"].digest:
        raise InputError(
            f"{corpus}: the pipeline was evaluated on another; run train-{pipeline} and evaluate-{pipeline}"
        )
    meta = describe(model, identity, results, manifest, contents)
    head, body = write_card(meta, results.metrics, results.merge, manifest, contents, ship_at)
    with staged(out, folder=True) as made:
        made.mkdir()
        name = f"{meta['lang']}_{meta['name']}"
        files = pipeline_files(name, model, corpus, meta, contents, body)
        wheel = write_wheel(made, meta | {"name": name}, files, {"spacy_models": {name: name}}, body)
        if contents.per_label:
            code = Path(spacy_per_label.__file__).parent
            write_wheel(
                made, RECOGNIZER, {f"{code.name}/{file.name}": file for file in code.glob("*.py")}, ENTRY_POINTS
            )
        (made / CARD).write_text(f"---\n{head}---\n\n{body}", encoding="utf8")
    return Package(out / wheel, contents, label_verdicts(results.metrics, ship_at))


def describe(
    model: Path, identity: PackageName, results: Results, manifest: Manifest, contents: Contents
) -> dict[str, Any]:
    """Write the meta.json of a package: spaCy's, with the package's name, its scores, and what it was trained on."""
    meta = json.loads((model / "meta.json").read_text(encoding="utf8"))
    metrics: Any = results.metrics
    merge: Any = results.merge
    scores = metrics.all_gold
    by_label = {name: {"p": own.p, "r": own.shown().r, "f": own.shown().f} for name, own in scores.labels.items()}
    # What the tokenizer needs is the version whose words the pipeline has learnt.
    requirements = list(contents.packages)
    if contents.per_label:
        requirements.append(f"spacy-per-label>={spacy_per_label.__version__}")
    if contents.transformer:
        requirements.append(f"spacy-transformers>={installed('spacy-transformers')}")
    return (
        meta
        | msgspec.structs.asdict(identity)
        | {
            "performance": {"ents_p": scores.p, "ents_r": scores.r, "ents_f": scores.f, "ents_per_type": by_label},
            "requirements": requirements,
            "labelwise": {
                "scores": msgspec.to_builtins(scores),
                "texts": metrics.texts,
                "corpus": merge.digest,
                "splits": msgspec.to_builtins(manifest.splits),
                "gold": merge.gold,
                "complete": {name: counts.get("complete", 0) for name, counts in merge.labels.items()},
                "texts_digest": metrics.texts_digest,
                "predictions_digest": metrics.predictions_digest,
            },
        }
    )


def pipeline_files(
    name: str, model: Path, corpus: Path, meta: dict[str, Any], contents: Contents, card: str
) -> dict[str, bytes | Path]:
    """List the files of a pipeline's package, as `spacy package` has them: no words, no paths of this machine."""
    data = f"{name}/{name}-{meta['version']}"
    found = (path for path in model.rglob("*") if path.is_file() and path.name != SEEN_TEXTS)
    files: dict[str, bytes | Path] = {f"{data}/{path.relative_to(model).as_posix()}": path for path in found}
    config = load_config(model / "config.cfg", interpolate=False)
    config["paths"] = dict.fromkeys(config["paths"])
    if is_folder(contents.embedding):  # whose weights are in the pipeline
        config["system"]["transformer"] = Path(contents.embedding).name
        config["components"]["ner"]["model"]["tok2vec"]["name"] = Path(contents.embedding).name
    content = {
        f"{data}/config.cfg": config.to_str(),
        f"{data}/meta.json": json.dumps(meta, indent=2, ensure_ascii=False),
        f"{data}/{CARD}": card,
        f"{name}/meta.json": json.dumps(meta, indent=2, ensure_ascii=False),
        f"{name}/__init__.py": INIT,
    }
    if not contents.vectors:
        content[f"{data}/vocab/strings.json"] = json.dumps(strings_of(corpus, contents.labels), ensure_ascii=False)
    return files | {path: text.encode() for path, text in content.items()}


def write_wheel(
    folder: Path,
    meta: Mapping[str, Any],
    files: Mapping[str, bytes | Path],
    entry_points: Mapping[str, Mapping[str, str]],
    card: str = "",
) -> str:
    """Write a wheel; equal files give equal bytes (packaging.python.org, Binary distribution format).

    meta (Mapping): name, version, license, description, spacy_version, requirements.
    files (Mapping): their content by path.
    RETURNS (str): its name.
    """
    stem = f"{meta['name']}-{meta['version']}"
    lines = ["Metadata-Version: 2.1", f"Name: {meta['name']}", f"Version: {meta['version']}"]
    lines += [f"Summary: {' '.join(meta['description'].split())}", f"License: {meta['license']}"]
    lines += ["Requires-Python: >=3.11", "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {one}" for one in (f"spacy{meta['spacy_version']}", *meta["requirements"])]
    points = "".join(
        "".join([f"[{group}]\n", *(f"{name} = {target}\n" for name, target in found.items())])
        for group, found in entry_points.items()
    )
    contents: dict[str, bytes | Path] = {
        **files,
        f"{stem}.dist-info/METADATA": "\n".join([*lines, "", card]).encode(),
        f"{stem}.dist-info/WHEEL": WHEEL.encode(),
        f"{stem}.dist-info/entry_points.txt": points.encode(),
    }
    record: list[str] = []
    with ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for path, content in sorted(contents.items()):
            data = content.read_bytes() if isinstance(content, Path) else content
            archive.writestr(ZipInfo(path), data, ZIP_DEFLATED)  # dated 1980
            digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
        path = f"{stem}.dist-info/RECORD"
        archive.writestr(ZipInfo(path), "".join([*record, f"{path},,\n"]), ZIP_DEFLATED)
    return f"{stem}-py3-none-any.whl"
