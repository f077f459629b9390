"""Put a pipeline into an installable wheel, with scores, digests and a model card.

It needs spaCy (and spacy-transformers, if it has a transformer), and the recognizer, `spacy_per_label`, a package that
several pipelines share, whose wheel is put beside it. On the CPU its matrices are multiplied by numpy, as in training
and evaluation here, whatever thinc's ops are otherwise: the same predictions, to the bit, and faster than with thinc's
own (docs/scale.md).
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from spacy.cli.package import package as make_sources
from spacy.util import load_config

import spacy_per_label
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import Manifest, read_manifest
from labelwise.corpus.seen_texts import SEEN_TEXTS
from labelwise.errors import InputError
from labelwise.evaluate.results import load_results
from labelwise.evaluate.scores import Metrics
from labelwise.files import check_replaceable, digest_folder, staged, workspace
from labelwise.package.card import write_card
from labelwise.package.contents import Contents, inspect_contents, is_folder

CARD = "README.md"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
VERSION = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){0,3}((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?"
)  # PEP 440, as pip writes it
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
EPOCH = "315532800"  # 1980, the first year that a zip file can name: equal pipelines give equal wheels

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
RECOGNIZER = f'''[project]
name = "spacy-per-label"
version = "{spacy_per_label.__version__}"
description = "A named-entity recognizer for spaCy with a head for each label, which learns from partial annotation"
requires-python = ">=3.11"
dependencies = ["spacy>=3.8,<3.9"]

[project.entry-points.spacy_factories]
per_label = "spacy_per_label.component:make_per_label"

[project.entry-points.spacy_architectures]
"spacy-per-label.Heads.v1" = "spacy_per_label.model:make_heads"
"spacy-per-label.Transformer.v1" = "spacy_per_label.transformer:make_transformer"

[tool.setuptools]
packages = ["spacy_per_label"]
'''


class Package(NamedTuple):
    """The file that was made, and what the pipeline in it has."""

    wheel: Path
    contents: Contents


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


def make_package(root: Path, pipeline: str, out: Path, identity: PackageName, *, with_digests: bool = False) -> Package:
    """Put the best pipeline into a wheel, in a folder that is replaced as a whole, beside its card, README.md.

    root (Path): the project's folder: it has training/PIPELINE/model-best, metrics/ and corpus/.
    pipeline (str): "cpu" or "gpu".
    with_digests (bool): with the digests of its training's texts; see `corpus.seen_texts`.
    RAISES (InputError): something of that isn't there, or the wheel can't be built.
    """
    check_replaceable(out, (CARD,), "package")
    model, corpus = root / "training" / pipeline / "model-best", root / "corpus"
    contents = inspect_contents(model, corpus)
    if with_digests and not (model / SEEN_TEXTS).is_file():
        raise InputError(f"--with-digests: {model} has no {SEEN_TEXTS}; run train-{pipeline} again")
    results = load_results(root, pipeline)
    if results.metrics is None or results.merge is None:
        raise InputError(f"{root / 'metrics'}: there are no scores of the pipeline; run evaluate-{pipeline}")
    manifest = read_manifest(corpus)
    if results.metrics.pipeline_digest != digest_folder(model):
        raise InputError(f"{root / 'metrics'}: its scores are of another pipeline; run evaluate-{pipeline} again")
    if results.metrics.texts_digest != manifest.splits["test"].digest:
        raise InputError(
            f"{corpus}: the pipeline was evaluated on another; run train-{pipeline} and evaluate-{pipeline}"
        )
    with workspace(out) as folder, staged(out, folder=True) as made:
        copy = folder / "pipeline"
        shutil.copytree(model, copy, ignore=None if with_digests else shutil.ignore_patterns(SEEN_TEXTS))
        meta = _describe(copy, identity, results.metrics, results.merge, manifest, contents)
        wheel = f"{meta['lang']}_{identity.name}-{identity.version}-py3-none-any.whl"
        card = write_card(
            meta,
            metrics=results.metrics,
            merge=results.merge,
            manifest=manifest,
            contents=contents,
            wheel=wheel,
            digests=with_digests,
        )
        # Without the head: spacy-huggingface-hub puts one of its own there, from meta.json.
        (copy / CARD).write_text(card.body, encoding="utf8")
        made.mkdir()
        _build_pipeline(copy, folder, made, meta, contents)
        if contents.per_label:
            _build_recognizer(folder, made)
        if not (made / wheel).is_file():
            raise RuntimeError(
                f"setuptools made {[file.name for file in made.iterdir()]}, and not {wheel}: please report this"
            )
        (made / CARD).write_text(str(card), encoding="utf8")
    return Package(out / wheel, contents)


def _describe(
    copy: Path,
    identity: PackageName,
    metrics: Metrics,
    merge: Ledger,
    manifest: Manifest,
    contents: Contents,
) -> dict[str, Any]:
    """Write what is known of a pipeline into its meta.json, and take the paths of this machine out of its config."""
    meta = json.loads((copy / "meta.json").read_text(encoding="utf8"))
    scores = metrics.all_gold
    meta |= {
        "name": identity.name,
        "version": identity.version,
        "license": identity.license,
        "description": identity.description,
        "performance": {
            "ents_p": scores.p,
            "ents_r": scores.r,
            "ents_f": scores.f,
            "ents_per_type": {
                name: {"p": own.p, "r": own.shown().r, "f": own.shown().f} for name, own in scores.labels.items()
            },
        },
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
    (copy / "meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf8")
    config = load_config(copy / "config.cfg", interpolate=False)
    config["paths"] = dict.fromkeys(config["paths"])
    embedding = config["components"]["ner"]["model"]["tok2vec"]
    if is_folder(embedding.get("name", "")):
        embedding["name"] = Path(embedding["name"]).name  # its weights are in the pipeline
    config.to_disk(copy / "config.cfg")
    return meta


def _build_pipeline(copy: Path, folder: Path, out: Path, meta: dict[str, Any], contents: Contents) -> None:
    """Build the wheel of a pipeline's folder."""
    (sources := folder / "sources").mkdir()
    make_sources(copy, sources, create_sdist=False, create_wheel=False, require_parent=True)
    (project,) = sources.iterdir()
    (package,) = (path for path in project.iterdir() if path.is_dir())
    (package / "__init__.py").write_text(INIT, encoding="utf8")
    found = json.loads((project / "meta.json").read_text(encoding="utf8"))
    # spaCy counts what has the recognizer among the requirements, which may be labelwise here; and it rounds scores.
    # What the tokenizer needs is the version whose words the pipeline has learnt.
    others = [line for line in found["requirements"] if not line.startswith(("labelwise", "spacy-per-label"))]
    if contents.per_label:
        others.append(f"spacy-per-label>={spacy_per_label.__version__}")
    if contents.transformer:
        others.append(f"spacy-transformers>={installed('spacy-transformers')}")
    meta = found | meta | {"requirements": others + contents.packages}
    (project / "meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf8")
    _run_setuptools(project, out)


def _build_recognizer(folder: Path, out: Path) -> None:
    """Build the wheel of the package `spacy_per_label`, of the code that is running."""
    project = folder / "recognizer"
    code = Path(spacy_per_label.__file__).parent
    shutil.copytree(code, project / code.name, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "pyproject.toml").write_text(RECOGNIZER, encoding="utf8")
    _run_setuptools(project, out)


def _run_setuptools(project: Path, out: Path) -> None:
    """Build a wheel with setuptools alone: an environment that uv made has no pip.

    RAISES (InputError): setuptools couldn't.
    RAISES (OSError): the disk is full.
    """
    done = subprocess.run(  # noqa: S603 (setuptools, on a folder that was just made)
        [sys.executable, "-c", BUILD, str(out.resolve())],
        cwd=project,
        env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
        text=True,
        check=False,
    )
    if os.strerror(errno.ENOSPC) in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if done.returncode:
        raise InputError(f"setuptools couldn't build the wheel: {done.stderr.strip()[-500:]}")
