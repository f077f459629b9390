"""Trainings that are steps of a longer work: one that has ended isn't repeated where the work was killed afterwards."""

from pathlib import Path

from labelwise.train.checkpoint import digest_training
from labelwise.train.config import read_settings
from labelwise.train.run import Log, train_pipeline
from labelwise.train.training_config import TrainingConfig


def train_once(wanted: TrainingConfig, out: Path, log: Log = lambda message: None) -> None:
    """Train a pipeline, unless training may resume and the same training has ended there before.

    A file beside the pipeline has the digest of the training; see `digest_training`. The curve is beside it, too.

    out (Path): the pipeline's folder.
    RAISES (InputError): what `train_pipeline` raises.
    """
    ended, digest = out.with_suffix(".ended"), digest_training(read_settings(wanted), wanted.corpus, wanted.gpu_id)
    if wanted.resume and ended.is_file() and ended.read_text(encoding="utf8") == digest:
        return
    ended.unlink(missing_ok=True)
    train_pipeline(wanted, out, out.with_suffix(".tsv"), log=log)
    ended.write_text(digest, encoding="utf8")
