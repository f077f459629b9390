"""What is said of scores on texts that the pipeline was trained on, or may have been."""

from labelwise.common.wording import counted
from labelwise.evaluate.scores import Metrics

REMEDY = "Evaluate it on test of the corpus that it was trained on, or train it again"


def tell_seen(metrics: Metrics) -> str:
    """Say it in a sentence, without its full stop; empty if it was trained on none of them."""
    seen, texts = metrics.seen, counted(metrics.texts, "text")
    if seen and seen.texts:
        f, without = ("unknown" if f is None else f"{f:.3f}" for f in (metrics.all_gold.f, seen.f_without))
        some = f"{'' if seen.whole else 'at least '}{seen.texts:,} of the {texts}"
        return f"The pipeline was trained on {some} (in its train or dev): F is {f}, without them {without}"
    if seen and seen.whole:
        return ""
    return (
        f"Unknown whether the pipeline was trained on some of the {texts}: it, or the one that it began with, has no "
        "digests of its texts"
    )
