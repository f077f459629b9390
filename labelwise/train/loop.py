"""The training loop: spaCy's (spacy/training/loop.py, train_while_improving), streamed, in one process or more.

Texts are streamed, whatever `max_epochs` is. An update that runs out of memory is repeated in smaller micro-batches;
one with a non-finite loss changes nothing. Randomness in a step follows from seed, step number and rank, so a training
resumes by setting the schedules and the position in the corpus.

Each rank runs the loop on the same batches. Ranks divide the texts of each batch, and of dev, sum gradients and counts,
and so take the same steps.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from thinc.api import constant

from labelwise.base.parallel import trim_heap
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.pipeline import excluded_labels_of, predict_each
from labelwise.train.ahead import open_batches
from labelwise.train.dev_scores import count_entities, scores_of, weighted_score
from labelwise.train.ranks import sum_gradients
from labelwise.train.training import Training
from labelwise.train.updates import update_within_memory

TRIM = 50  # steps after which freed memory is returned


def train_while_improving(training: Training) -> Iterator[dict[str, Any]]:
    """Take steps until `max_steps`, `max_epochs` or `patience` ends training; the last one is evaluated.

    YIELDS (dict[str, Any]): spaCy's info for its logger, after each step; `score` is None without an evaluation. The
        consumer logs, and saves pipelines and checkpoints.
    RAISES (InputError): if memory ran out, losses weren't finite, or the corpus is empty.
    """
    nlp, state, ranks, optimizer = training.nlp, training.state, training.ranks, training.optimizer
    settings, spent, evaluated = training.settings, training.spent, state.step
    drop = settings["dropout"]
    dropouts = islice(constant(drop) if isinstance(drop, float) else drop, state.step + 1, None)
    batches = open_batches(training)
    while not is_over(training):
        with training.timed("seconds"):
            # Read this rank's texts of the next batch.
            with training.timed("waiting"):
                batch = next(batches, None)
            if batch is None:  # the last epoch has ended
                break
            # Forward and backward; no losses if a rank's isn't finite, and all ranks skip the update.
            losses = update_within_memory(training, batch.texts, next(dropouts))
            if losses is not None:
                training.losses.update(losses)
                # Sum the gradients of all ranks: all of them take the same step.
                with training.timed("waiting"):
                    sum_gradients(training.parameters, ranks)
                # Update the parameters and their averages; clear the gradients.
                for _, component in nlp.pipeline:
                    if getattr(component, "is_trainable", False):
                        component.finish_update(optimizer)  # type: ignore[attr-defined]
            # Count the step, even if it was skipped: schedules and randomness follow from its number.
            optimizer.step_schedules()
            state.step, state.epoch, state.batches = state.step + 1, batch.epoch, batch.number
            state.words, spent["words"] = state.words + batch.words, spent["words"] + batch.words
            if state.step % TRIM == 0:
                trim_heap()
        # Score dev; the consumer logs, and saves the best pipeline and a checkpoint.
        if state.step and state.step % settings["eval_frequency"] == 0:
            evaluated = state.step
            yield evaluate(training)
        else:
            yield {"step": state.step, "score": None}
    if state.step > evaluated:
        yield evaluate(training)


def is_over(training: Training) -> bool:
    """Return whether training has ended, by `max_steps` or by `patience`."""
    state, settings = training.state, training.settings
    step, every = state.step, settings["eval_frequency"]
    scores = [0.0, *state.scores]  # after step 0, nothing has been learned
    waited = step - every * scores.index(max(scores)) if step % every == 0 else 0
    return 0 < settings["max_steps"] <= step or 0 < settings["patience"] <= waited


def describe_end(training: Training) -> str:
    """Name the setting that ended a training before `max_steps`, or ""."""
    settings, step, scores = training.settings, training.state.step, [0.0, *training.state.scores]
    last, patience, best = settings["max_steps"], settings["patience"], scores.index(max(scores))
    if 0 < last <= step:
        return ""
    if not 0 < patience <= step - settings["eval_frequency"] * best:
        return f"max_epochs = {settings['max_epochs']} in [training] ended training at step {step:,}"
    return (
        f"patience = {patience} in [training] ended training at step {step:,}{f' of {last:,}' if last else ''}: no "
        f"evaluation after step {settings['eval_frequency'] * best:,} was better"
    )


def evaluate(training: Training) -> dict[str, Any]:
    """Score the averaged parameters on dev; return scores, losses and timings since the last evaluation."""
    with training.nlp.use_params(training.optimizer.averages):
        score, scores = score_dev(training)
    state, losses = training.state, Counter[str]()
    for rank_losses in training.ranks.all_gather_object(training.losses):
        losses.update(rank_losses)
    state.scores.append(score)
    state.seconds += training.spent["seconds"]
    info = {name: getattr(state, name) for name in ("step", "epoch", "words")}
    info |= {"score": score, "other_scores": scores, "losses": losses, "spent": training.spent.copy()}
    training.losses.clear()
    training.spent.clear()
    return info


def score_dev(training: Training) -> tuple[float, dict[str, Any]]:
    """Score dev by the config's weights; each rank counts its texts' entities."""
    ranks = training.ranks
    share = islice(training.dev.texts(), ranks.rank, None, ranks.count)
    corpus, excluded_labels = training.dev.path.resolve().parent, excluded_labels_of(training.nlp)
    labels = [label for label in read_manifest(corpus).labels if label not in excluded_labels]
    counts = count_entities(predict_each(training.nlp, share, len), labels)
    scores = scores_of(sum(ranks.all_gather_object(counts)), labels)
    return weighted_score(scores, training.settings["score_weights"]), scores
