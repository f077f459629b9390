"""Decoding: each label's most probable spans, their probabilities, and the choice of them that doesn't overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spacy_per_label.loss import TINY
from spacy_per_label.targets import BEGIN, IN, LAST, OUT, UNIT


@dataclass(eq=False)
class FoundSpans:
    """The spans that were found in a doc, sorted by label, then start; arrays with a row for each.

    labels (np.ndarray): numbers of the labels.
    starts, ends (np.ndarray): in tokens, `ends` exclusive.
    probabilities (np.ndarray): of each span's tags, of all that are legal; between 0 and 1.
    """

    labels: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        """Give the number of spans."""
        return len(self.labels)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield the start, the end and the label's number of each."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.labels.tolist(), strict=True)

    @classmethod
    def nothing(cls) -> "FoundSpans":
        """Make what was found where there is nothing."""
        none = np.zeros(0, int)
        return cls(none, none, none, np.zeros(0))


def decode(log_p: np.ndarray, lengths: Sequence[int]) -> list[FoundSpans]:
    """Find, for each doc and label, the most probable legal sequence of tags, and its spans.

    Legal is O, U, or B followed by any number of I and then L; no span is open at the end of a doc. So there are two
    states between tokens, closed and open, and the sequence is found in one pass over the tokens, for all docs and
    labels at a time (Viterbi). A span's probability is the share of all legal sequences, by theirs, that have it: those
    of its tags, of all ways to be closed before it, and behind it (forward-backward; Rabiner, A Tutorial on Hidden
    Markov Models, 1989).

    log_p (np.ndarray): of the shape (tokens of all docs, labels, 5).
    lengths (Sequence[int]): tokens of each doc.
    """
    order = np.argsort([-length for length in lengths], kind="stable")
    sizes = np.array(lengths, int)[order]
    starts = np.cumsum([0, *lengths])[:-1][order]
    # Longest first: those that are still running at a token are the first so many.
    running = [int((sizes > token).sum()) for token in range(max(lengths, default=0))]
    tags = _best_tags(log_p, starts, running)
    # Of each label, the so-manieth beginning and the so-manieth end are of one span.
    label, start = np.nonzero(((tags == BEGIN) | (tags == UNIT)).T)
    stop = np.nonzero(((tags == LAST) | (tags == UNIT)).T)[1] + 1
    sums = np.cumsum(np.take_along_axis(log_p, tags[..., None], 2)[..., 0], axis=0, dtype="float64")
    own = sums[stop - 1, label] - np.where(start > 0, sums[start - 1, label], 0)
    before, behind, total = _ways_closed(log_p, np.stack([starts, starts + sizes - 1]), running)
    doc = np.repeat(np.argsort(order), lengths)[start]  # its place in the order
    ways = own + before[start, label] + behind[stop - 1, label] - total[doc, label]
    probability, start, stop = np.exp(np.minimum(ways, 0)), start - starts[doc], stop - starts[doc]
    by_doc = np.argsort(order[doc], kind="stable")
    cuts = np.searchsorted(order[doc][by_doc], np.arange(len(lengths) + 1))
    return [
        FoundSpans(*(column[by_doc[first:last]] for column in (label, start, stop, probability)))
        for first, last in pairwise(cuts.tolist())
    ]


def _best_tags(log_p: np.ndarray, starts: np.ndarray, running: Sequence[int]) -> np.ndarray:
    """Find the most probable legal sequences of tags, of the shape (tokens of all docs, labels)."""
    closed = np.zeros((len(starts), log_p.shape[1]), log_p.dtype)
    opened = np.full_like(closed, -np.inf)
    # How each state is best reached: closed by O, U or L, and open by B or I.
    tags, tags_open = (np.zeros(log_p.shape[:2], np.int8) for _ in range(2))
    for token, n in enumerate(running):
        places = starts[:n] + token
        rows = log_p[places]
        by_last, stays = opened[:n] + rows[..., LAST], closed[:n] + np.maximum(rows[..., OUT], rows[..., UNIT])
        begins, inside = closed[:n] + rows[..., BEGIN], opened[:n] + rows[..., IN]
        ends = by_last > stays
        tags[places] = np.where(ends, LAST, np.where(rows[..., UNIT] > rows[..., OUT], UNIT, OUT))
        tags_open[places] = np.where(inside > begins, IN, BEGIN)
        closed[:n], opened[:n] = np.where(ends, by_last, stays), np.maximum(inside, begins)
    is_open = np.zeros(closed.shape, bool)  # behind the token, which is looked at from the last one on
    for token, n in reversed(list(enumerate(running))):
        places = starts[:n] + token
        tags[places] = np.where(is_open[:n], tags_open[places], tags[places])
        is_open[:n] = (tags[places] == LAST) | (tags[places] == IN)
    return tags


def ways_closed(log_p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add up the ways to tag the tokens of one doc, of which a span that nobody found has its share, too; see `decode`.

    log_p (np.ndarray): of the shape (tokens, labels, 5).
    RETURNS (tuple): logarithms: of each token and label, of the ways before it and behind it; of each label, of all.
    """
    before, behind, total = _ways_closed(log_p, np.array([[0], [len(log_p) - 1]]), [1] * len(log_p))
    return before, behind, total[0]


def _ways_closed(
    log_p: np.ndarray, bounds: np.ndarray, running: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add up the probabilities of all ways to tag the tokens of a doc, from both ends, so that no span is open between.

    bounds (np.ndarray): two rows, the first and the last token of each doc.
    RETURNS (tuple): logarithms: of each token and label, of the ways before it and behind it; of each doc and label, of
        all of them.
    """
    closed = np.ones((*bounds.shape, log_p.shape[1]))
    opened, scale = np.zeros_like(closed), np.zeros_like(closed)  # which keeps their sum at 1
    found = np.zeros((2, *log_p.shape[:2]), log_p.dtype)
    side, step = np.array([[0], [1]]), np.array([[1], [-1]])
    with np.errstate(divide="ignore"):
        for token, n in enumerate(running):
            places = bounds[:, :n] + step * token
            is_closed, is_opened = closed[:, :n], opened[:, :n]
            found[side, places] = np.log(is_closed) + scale[:, :n]
            p = np.exp(log_p[places])
            p[1, ..., [BEGIN, LAST]] = p[1, ..., [LAST, BEGIN]]  # the other way round, a span begins with its last tag
            closes = is_closed * (p[..., OUT] + p[..., UNIT]) + is_opened * p[..., LAST]
            opens = is_closed * p[..., BEGIN] + is_opened * p[..., IN]
            sums = closes + opens
            closed[:, :n], opened[:, :n] = closes / sums, opens / sums
            scale[:, :n] += np.log(sums)
        return found[0], found[1], np.log(closed[0]) + scale[0]


def log_odds(p: np.ndarray) -> np.ndarray:
    """Compute the logarithm of p / (1 - p), for numbers from TINY to 1 - TINY."""
    p = np.clip(p, TINY, 1 - TINY)
    return np.log(p) - np.log1p(-p)


def calibrated(probabilities: np.ndarray, slopes: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """Turn the probabilities of spans into how often such spans are right: log-odds are scaled, and shifted.

    Platt, Probabilistic Outputs for Support Vector Machines (1999); with a shift of 0, the scale is the inverse of a
    temperature (Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
    """
    return 1 / (1 + np.exp(-(slopes * log_odds(probabilities) + intercepts)))


def choose_flat(found: FoundSpans) -> list[int]:
    """Choose the spans without overlap that have the highest sum of -log(1 - p): least likely, all of them are wrong.

    Each weight is positive, so a span that overlaps no other is chosen, however improbable it is.
    Weighted interval scheduling (Kleinberg and Tardos, Algorithm Design, section 6.1).
    RETURNS (list[int]): their numbers, in the order of the text.
    """
    if not len(found):
        return []
    weights = -np.log1p(-np.clip(found.probabilities, TINY, 1 - TINY))
    order = np.lexsort((found.starts, found.ends)).tolist()
    ends = found.ends[order]
    before = np.searchsorted(ends, found.starts[order], side="right").tolist()
    best = [0.0]
    for place, number in enumerate(order):
        best.append(max(best[-1], float(weights[number]) + best[before[place]]))
    chosen, place = [], len(order)
    while place:
        number = order[place - 1]
        if float(weights[number]) + best[before[place - 1]] > best[place - 1]:
            chosen.append(number)
            place = before[place - 1]
        else:
            place -= 1
    return chosen[::-1]
