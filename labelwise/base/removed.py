"""Removed keys and values of project.yml, configs and datasets.yml, for two releases, with replacements."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelwise.base.errors import InputError

# 0.4.0, project.yml
PROJECT = {
    "vars.brat_dir": "write data: the folder that has your brat/ and prodigy/, such as assets",
    "vars.datasets": "write data: the folder that has your brat/ and prodigy/, such as assets",
    "vars.cpu_steps": "write steps, of all pipelines; 0 leaves them to the config",
    "vars.small_steps": "write steps, of all pipelines; 0 leaves them to the config",
    "vars.gpu_steps": "write steps, of all pipelines; 0 leaves them to the config",
    "vars.limit": "write limit in [corpora.train] of the config",
    "vars.gpu_id": "a config with gpu_allocator in [system] trains on GPU 0; CUDA_VISIBLE_DEVICES chooses another",
    "vars.transformer_name": "write name in [components.ner.model.tok2vec] of configs/gpu.cfg",
    "vars.small_transformer": "write name in [components.ner.model.tok2vec] of configs/small.cfg",
    "vars.precision": "write mixed_precision, and enabled of its grad_scaler_config, in configs/gpu.cfg",
    "vars.vectors": "write vectors in [components.tok2vec.model.embed] of configs/cpu.cfg",
    "vars.recognizer": "spaCy's own recognizer is a pipeline, ner: python -m scripts.train ner",
    "dvc.stages": "write pipelines, a list of configs' names, such as [cpu, gpu]",
    "tokenizer": "the rules are in configs/tokenizer.yml; move yours there",
    "report.ship_at": "write target_f1",
    "report.base": "write baseline",
    "merge.normalize": "delete it: texts that differ in white space or Unicode's composition alone are one text anyway",
    "merge.duplicates: error": "write latest or union; the merge's table counts superseded rows",
    "merge.conflicts: latest": "write accept-wins or reject-wins",
    "merge.overlap: error": "write longest or first; the merge's table counts spans that overlap",
    "merge.alignment: error": "write drop, expand or contract; the merge's table counts spans without token boundaries",
}
# 0.4.0, configs
CONFIG = {
    "components.per_label": "the component ner is the per-label recognizer; rename the block to [components.ner]",
    "system.transformer": "write name in [components.ner.model.tok2vec]",
    "system.mixed_precision": "write mixed_precision in [components.ner.model.tok2vec]",
    "system.grad_scaler": "write enabled in [components.ner.model.tok2vec.grad_scaler_config]",
    "system.epochs": "write epochs in [labelwise]",
    "system.least_steps": "write least_steps in [labelwise]",
    "system.most_steps": "write max_steps in [training]",
    "system.small_batch": "write few_words and few_batch in [labelwise]",
    "system.half_weights": "write half_weights in [labelwise]",
    "components.ner.model.tok2vec.@architectures: spacy-per-label.Transformer.v1": (
        'write @architectures = "spacy-per-label.Transformer.v2", and context = 16 in the place of stride; delete '
        "half_weights and the block tokenizer_config"
    ),
    "system.portable": "delete it; OPENBLAS_CORETYPE and NPY_DISABLE_CPU_FEATURES do the same: docs/training.md",
    "system.keep_untaught": "delete it; a label that no text of train is complete for stays out",
    "corpora.train.coverage": "delete it; it follows the merge's coverage",
    "corpora.dev.coverage": "delete it; it follows the merge's coverage",
}


def check_removed(file: Path | str, content: Mapping[str, Any], removed: Mapping[str, str] = CONFIG) -> None:
    """Refuse a file with keys or values of an older release; name the replacements."""
    if keys := [f"{key}: {removed[key]}" for key in removed if has_key(content, key)]:
        since = "labelwise no longer reads " + ("these keys" if len(keys) > 1 else "this key")
        raise InputError(f"{file}: {since}:\n" + "\n".join(f"  {line}" for line in keys))


def has_key(content: Any, key: str) -> bool:
    """Return whether nested maps have a dotted key; with `: VALUE`, whether it has that value."""
    names, _, value = key.partition(": ")
    for name in names.split("."):
        if not isinstance(content, Mapping) or name not in content:
            return False
        content = content[name]
    return not value or str(content) == value
