"""Decoding: each label's most probable spans, their probabilities, and the choice of them that doesn't overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spacy_per_label.loss import TINY


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
    states between tokens, closed and open. One pass forward and one back, over all docs and labels at a time, find the
    best sequence (Viterbi), and add up the probabilities of all legal ones: that of a span is the share of those that
    have it (forward-backward; Rabiner, A Tutorial on Hidden Markov Models, 1989).

    log_p (np.ndarray): of the shape (tokens of all docs, labels, 5).
    lengths (Sequence[int]): tokens of each doc.
    """
    order = np.argsort([-length for length in lengths], kind="stable")
    starts = np.cumsum([0, *lengths])[:-1][order]
    # Longest first: those that are still running at a token are the first so many.
    running = [int(sum(length > token for length in lengths)) for token in range(max(lengths, default=0))]
    ways = _forward(log_p, starts, running)
    found = list(_backward(log_p, starts, running, *ways))
    if not found:
        return [FoundSpans.nothing() for _ in lengths]
    doc, label, start, stop, probability = (np.concatenate(column) for column in zip(*found, strict=True))
    doc = order[doc]
    by_doc = np.lexsort((start, label, doc))
    cuts = np.searchsorted(doc[by_doc], np.arange(len(lengths) + 1))
    return [
        FoundSpans(*(column[by_doc[first:last]] for column in (label, start, stop, probability)))
        for first, last in pairwise(cuts.tolist())
    ]


def _forward(log_p: np.ndarray, starts: np.ndarray, running: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Find how each state is best reached, and sum up the ways to it.

    RETURNS (tuple): of each token and label, how it is best closed, by O or U (0, 1) or L (2), and opened, by B (False)
        or I (True); the logarithm of all ways to be closed before it; and of all ways through each doc and label.
    """
    shape = (len(starts), log_p.shape[1])
    closed, opened = np.zeros(shape, log_p.dtype), np.full(shape, -np.inf, log_p.dtype)
    all_closed, all_opened = closed.copy(), opened.copy()
    how_closed, how_opened = np.zeros(log_p.shape[:2], np.int8), np.zeros(log_p.shape[:2], bool)
    closed_before = np.zeros(log_p.shape[:2], log_p.dtype)
    for token, n in enumerate(running):
        places = starts[:n] + token
        out, begin, inside, last, unit = np.moveaxis(log_p[places], 2, 0)
        by_last, stays = opened[:n] + last, closed[:n] + np.maximum(out, unit)
        begins, goes_on = closed[:n] + begin, opened[:n] + inside
        how_closed[places] = np.where(by_last > stays, 2, unit > out)
        how_opened[places] = goes_on > begins
        closed[:n], opened[:n] = np.maximum(by_last, stays), np.maximum(goes_on, begins)
        closed_before[places] = all_closed[:n]
        all_closed[:n], all_opened[:n] = (
            np.logaddexp(all_opened[:n] + last, all_closed[:n] + np.logaddexp(out, unit)),
            np.logaddexp(all_opened[:n] + inside, all_closed[:n] + begin),
        )
    return how_closed, how_opened, closed_before, all_closed


def _backward(
    log_p: np.ndarray,
    starts: np.ndarray,
    running: Sequence[int],
    how_closed: np.ndarray,
    how_opened: np.ndarray,
    closed_before: np.ndarray,
    total: np.ndarray,
) -> Iterator[list[np.ndarray]]:
    """Follow the best sequences from their ends, and sum up the ways behind; yield spans, columns of those of a token.

    YIELDS (list): numbers of docs, of labels, starts, ends and probabilities.
    """
    is_open = np.zeros(total.shape, bool)  # before the token that was looked at last
    ends = np.zeros(total.shape, int)  # of the span that is open
    sums = np.zeros(total.shape, log_p.dtype)  # of its tags, and of all ways behind it
    closed, opened = np.zeros(total.shape, log_p.dtype), np.full(total.shape, -np.inf, log_p.dtype)
    for token in reversed(range(len(running))):
        n = running[token]
        places = starts[:n] + token
        out, begin, inside, last, unit = np.moveaxis(log_p[places], 2, 0)
        was_open = is_open[:n].copy()
        closes = ~was_open & (how_closed[places] == 2)
        single = ~was_open & (how_closed[places] == 1)
        goes_on, begins = was_open & how_opened[places], was_open & ~how_opened[places]
        ends[:n][closes | single] = token + 1
        sums[:n] = np.where(closes, closed[:n] + last, sums[:n])
        sums[:n] = np.where(single, closed[:n] + unit, sums[:n])
        sums[:n] += np.where(goes_on, inside, 0) + np.where(begins, begin, 0)
        doc, label = np.nonzero(begins | single)
        if len(doc):
            ways = (sums[:n] + closed_before[places] - total[:n])[doc, label]
            yield [doc, label, np.full(len(doc), token), ends[doc, label], np.exp(np.minimum(ways, 0))]
        is_open[:n] = closes | goes_on
        closed[:n], opened[:n] = (
            np.logaddexp(closed[:n] + np.logaddexp(out, unit), opened[:n] + begin),
            np.logaddexp(closed[:n] + last, opened[:n] + inside),
        )


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
