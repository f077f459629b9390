import os
import re
from itertools import pairwise
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
import spacy
from thinc.api import Config

from labelwise.base.errors import InputError
from labelwise.train import loop, updates
from labelwise.train.parameters import find_parameters
from labelwise.train.updates import finite_remedy
from spacy_per_label import component
from tests.train.training import CPU, GPU, STEPS, curve, files, train_in

LOSS = component.loss_and_gradient


def overflow_in(steps: range, monkeypatch, rank: int = 0) -> None:
    """Make a rank's loss NaN in some updates, counted from 0."""
    first, calls = os.getpid(), iter(range(10**6))

    def overflowed(*args):
        loss, gradient = LOSS(*args)
        here = (os.getpid() == first) == (rank == 0)
        return (np.inf, gradient * np.nan) if next(calls) in steps and here else (loss, gradient)

    monkeypatch.setattr(component, "loss_and_gradient", overflowed)


@pytest.mark.parametrize(("workers", "rank"), [(1, 0), (2, 0), (2, 1)])
def test_a_step_that_overflows_in_a_rank_is_skipped_in_all_and_said(workers, rank, demo_corpus, tmp_path, monkeypatch):
    overflow_in(range(2, 4), monkeypatch, rank)
    parameters: list[list[Any]] = []
    is_over, messages = loop.is_over, list[str]()

    def watch(training):
        every = training.ranks.all_gather_object([parameter.get() for parameter in training.parameters])
        assert all(np.array_equal(*pair) for other in every for pair in zip(other, every[0], strict=True))
        parameters.append(every[0])
        return is_over(training)

    monkeypatch.setattr(loop, "is_over", watch)
    trained = train_in(tmp_path, demo_corpus, workers=workers, log=messages.append)
    same = [all(map(np.array_equal, *two)) for two in pairwise(parameters)]
    assert same == [False, False, True, True, False, False, False]
    assert "changed for this training" in messages.pop(0)
    assert messages == ["Step 2: the loss isn't a finite number; the step is skipped, 1 so far"]
    assert (trained.state.skipped, trained.state.skipped_in_a_row, trained.state.step) == (2, 0, 6)
    assert all(float(loss) > 0 for (loss,) in curve(tmp_path, "loss_ner"))
    saved = find_parameters(spacy.load(tmp_path / "model"))
    assert all(np.isfinite(one.get()).all() for one in saved)


def test_steps_that_all_overflow_end_training_with_the_remedy(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(updates, "MAX_SKIPPED_STEPS", 3)
    monkeypatch.setattr("labelwise.train.logger.Bar", lambda *args: bar)
    bar = Mock()
    overflow_in(range(2, 10), monkeypatch)
    with pytest.raises(
        InputError, match=r"Step 4: the loss wasn't a finite number in 3 steps in a row. Remedy: a lower learn_rate in"
    ):
        train_in(tmp_path, demo_corpus)
    assert bar.mock_calls[-1] == call.close()


def test_higher_precision_is_a_remedy_only_for_lower_precisions():
    mixed, plain = Config().from_disk(GPU), Config().from_disk(CPU)
    assert finite_remedy(plain) == ""
    assert re.fullmatch(
        r"bf16, .*enabled = false.*, or fp32 \(mixed_precision = false, too\), or ", finite_remedy(mixed)
    )
    mixed["components"]["ner"]["model"]["tok2vec"]["grad_scaler_config"]["enabled"] = False
    assert finite_remedy(mixed) == "fp32 (mixed_precision = false), or "


def test_steps_that_were_skipped_are_counted_on_after_a_restart(demo_corpus, tmp_path, monkeypatch):
    overflow_in(range(1, 2), monkeypatch)
    train_in(tmp_path / "whole", demo_corpus)
    overflow_in(range(1, 2), monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr("labelwise.train.train_pipeline.write_seen", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_in(tmp_path / "failed", demo_corpus, STEPS)
    assert train_in(tmp_path / "failed", demo_corpus, resume=True).state.skipped == 1
    assert files(tmp_path / "failed") == files(tmp_path / "whole")
