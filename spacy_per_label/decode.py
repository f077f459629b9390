"""Decoding: each label's most probable spans, their probabilities, and a non-overlapping subset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spacy_per_label.loss import EPSILON
from spacy_per_label.targets import BEGIN, IN, LAST, OUT, UNIT

MIN_EXPONENT = -700.0  # smaller exponentials are 0 in double precision, which would leave no sequence


@dataclass(eq=False)
class FoundSpans:
    """The spans of a doc, sorted by label, then start; arrays of shape (spans,).

    labels (np.ndarray): numbers of the labels.
    starts, ends (np.ndarray): in tokens, `ends` exclusive.
    probabilities (np.ndarray): between 0 and 1.
    """

    labels: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    probabilities: np.ndarray

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and label number of each."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.labels.tolist(), strict=True)


class Layout:
    """Places of a batch's docs in its arrays, longest first, for processing all together.

    order (np.ndarray): shape (docs,); numbers, longest first.
    firsts, lasts (np.ndarray): shape (docs,); first and last token of each, in that order.
    running (list[int]): by token of the longest doc, number of docs that are that long.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.order = np.argsort([-length for length in lengths], kind="stable")
        sizes, self.firsts = np.array(lengths, int)[self.order], np.cumsum([0, *lengths])[:-1][self.order]
        self.lasts = self.firsts + sizes - 1
        self.running = [int((sizes > token).sum()) for token in range(max(lengths, default=0))]


def decode(
    log_p: np.ndarray, lengths: Sequence[int], least: Mapping[int, float] = {}, longest: Mapping[int, int] = {}
) -> list[FoundSpans]:
    """Find, for each doc and label, the most probable legal tag sequence, and its spans.

    Legal is O, U, or B followed by any number of I and then L; no span is open at the end of a doc. So there are two
    states between tokens, closed and open, and one pass over the tokens finds the sequence (Viterbi). A span's
    probability is its marginal: the total probability of the legal tag sequences that contain it, over that of all
    legal sequences (forward-backward; Rabiner, A Tutorial on Hidden Markov Models, 1989).

    log_p (np.ndarray): shape (tokens of all docs, labels, 5).
    lengths (Sequence[int]): tokens of each doc.
    least, longest (Mapping): by label's number, minimum probability of a span, and its maximum length in tokens: all
        such spans are found instead, and may overlap.
    """
    layout = Layout(lengths)
    tags = _best_tags(log_p, layout)  # (tokens, labels)
    # Per label, the n-th start and the n-th end belong to the same span. Tokens are counted through the batch.
    label, start = np.nonzero(((tags == BEGIN) | (tags == UNIT)).T)  # each (spans,)
    stop = np.nonzero(((tags == LAST) | (tags == UNIT)).T)[1] + 1
    doc = np.repeat(np.arange(len(lengths)), lengths)[start]
    # A span's own tags are a difference of running sums, which need double precision in a long batch.
    sums = np.cumsum(np.take_along_axis(log_p, tags[..., None], 2)[..., 0], axis=0, dtype="float64")  # (tokens, labels)
    of_span = sums[stop - 1, label] - np.where(start > 0, sums[start - 1, label], 0)
    # Its probability: all tags before it, its own, and all tags behind it, over the tags of the whole doc.
    forward, backward, log_z = forward_backward(log_p, layout)
    place = np.argsort(layout.order)
    of_all = log_z[place[doc], label]
    probability = np.exp(np.minimum(of_span + forward[start, label] + backward[stop - 1, label] - of_all, 0))
    by_doc = np.argsort(doc, kind="stable")
    if least:
        docs = np.repeat(np.arange(len(lengths)), lengths)  # (tokens,)
        before, others = forward - log_z[place[docs]], ~np.isin(label, [*least])
        parts = [(label[others], start[others], stop[others], probability[others])]
        parts += [
            _probable_spans(log_p, docs, before, backward, number, p, longest[number]) for number, p in least.items()
        ]
        label, start, stop, probability = map(np.concatenate, zip(*parts, strict=True))
        doc = docs[start]
        by_doc = np.lexsort((stop, start, label, doc))
    base = np.cumsum([0, *lengths])[doc]  # the doc's first token
    cuts = np.searchsorted(doc[by_doc], np.arange(len(lengths) + 1)).tolist()
    columns = [column[by_doc] for column in (label, start - base, stop - base, probability)]
    return [FoundSpans(*(column[first:last] for column in columns)) for first, last in pairwise(cuts)]


def _probable_spans(
    log_p: np.ndarray, docs: np.ndarray, before: np.ndarray, behind: np.ndarray, label: int, least: float, longest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Find all spans of a label with a marginal of at least `least`.

    docs (np.ndarray): shape (tokens,); number of each token's doc.
    before, behind (np.ndarray): shape (tokens, labels): forward log-sums minus the log-partition; backward log-sums.
    RETURNS (tuple): label's number, start, stop, probability, each (spans,); tokens are counted through the batch.
    """
    tags, parts = log_p[:, label].astype("float64"), []  # (tokens, 5)
    inside, before, behind = np.cumsum(tags[:, IN]), before[:, label], behind[:, label]
    for length in range(1, min(longest, len(docs)) + 1):
        first, last = slice(0, len(docs) - length + 1), slice(length - 1, None)
        of_span = tags[first, BEGIN] + tags[last, LAST] + np.roll(inside, 1)[last] - inside[first]
        p = np.exp(np.minimum(before[first] + (tags[:, UNIT] if length == 1 else of_span) + behind[last], 0))
        start = np.flatnonzero((p >= least) & (docs[first] == docs[last]))
        parts.append((np.full(len(start), label), start, start + length, p[start]))
    numbers, starts, stops, probabilities = map(np.concatenate, zip(*parts, strict=True))
    return numbers, starts, stops, probabilities


def _best_tags(log_p: np.ndarray, layout: Layout) -> np.ndarray:
    """Find the most probable legal tag sequences (Viterbi), shape (tokens, labels)."""
    closed = np.zeros((len(layout.order), log_p.shape[1]))  # (docs, labels): the best sum so far, without an open span
    opened = np.full_like(closed, -np.inf)
    stay = np.maximum(log_p[..., OUT], log_p[..., UNIT])  # (tokens, labels)
    # How each state is best reached: closed by L, else by O or U; open by I, else by B.
    ends, continues, is_open = (np.zeros(log_p.shape[:2], bool) for _ in range(3))
    # Forward, token by token; docs are sorted, so the first n are long enough.
    for token, n in enumerate(layout.running):
        places = layout.firsts[:n] + token
        rows = log_p[places]  # (n, labels, 5)
        by_last, stays = opened[:n] + rows[..., LAST], closed[:n] + stay[places]
        inside, begins = opened[:n] + rows[..., IN], closed[:n] + rows[..., BEGIN]
        ends[places], continues[places] = by_last > stays, inside > begins
        np.maximum(by_last, stays, out=closed[:n])
        np.maximum(inside, begins, out=opened[:n])
    # Back from the last token, along the best ways.
    behind = np.zeros(closed.shape, bool)  # (docs, labels): whether a span is open behind the token
    for token, n in reversed(list(enumerate(layout.running))):
        places = layout.firsts[:n] + token
        is_open[places] = behind[:n]
        behind[:n] = np.where(behind[:n], continues[places], ends[places])
    out = np.where(log_p[..., UNIT] > log_p[..., OUT], np.int8(UNIT), np.int8(OUT))
    return np.where(is_open, np.where(continues, np.int8(IN), np.int8(BEGIN)), np.where(ends, np.int8(LAST), out))


def forward_backward(log_p: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return forward and backward log-sums, and the log-partition of each doc.

    log_p (np.ndarray): shape (tokens of all docs, labels, 5).
    RETURNS (tuple): forward and backward log-sums in the closed state, each (tokens, labels); log-partition, (docs,
        labels), in order of the layout.
    """
    forward, log_z = _forward(log_p, layout.firsts, 1, layout.running)
    # Read from its end, a span begins with its last tag.
    backward, _ = _forward(log_p, layout.lasts, -1, layout.running, begin=LAST, last=BEGIN)
    return forward, backward, log_z


def _forward(
    log_p: np.ndarray, starts: np.ndarray, step: int, running: Sequence[int], begin: int = BEGIN, last: int = LAST
) -> tuple[np.ndarray, np.ndarray]:
    """Compute forward log-sums with no span open before each token, and the log-partition.

    RETURNS (tuple): shape (tokens, labels), and (docs, labels).
    """
    closed = np.ones((len(starts), log_p.shape[1]))  # (docs, labels)
    # Probabilities are scaled to the sum 1 after each token, and the logarithms of the scales kept: adding up without
    # logarithms is faster, and doesn't underflow.
    opened, scale = np.zeros_like(closed), np.zeros_like(closed)
    probabilities, scales = np.zeros(log_p.shape[:2]), np.zeros(log_p.shape[:2])  # (tokens, labels)
    for token, n in enumerate(running):
        places = starts[:n] + step * token
        was_closed, was_opened = closed[:n], opened[:n]
        probabilities[places], scales[places] = was_closed, scale[:n]
        p = np.exp(np.maximum(log_p[places], MIN_EXPONENT, dtype="float64"))  # (n, labels, 5)
        closes = was_closed * (p[..., OUT] + p[..., UNIT]) + was_opened * p[..., last]
        opens = was_closed * p[..., begin] + was_opened * p[..., IN]
        sums = closes + opens
        closed[:n], opened[:n] = closes / sums, opens / sums
        scale[:n] += np.log(sums)
    return np.log(probabilities, out=probabilities) + scales, np.log(closed) + scale


def log_odds(p: np.ndarray) -> np.ndarray:
    """Compute log(p / (1 - p)), for p from EPSILON to 1 - EPSILON."""
    p = np.clip(p, EPSILON, 1 - EPSILON)
    return np.log(p) - np.log1p(-p)


def calibrated(probabilities: np.ndarray, slopes: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """Calibrate the probabilities of spans: scale and shift their log-odds.

    Platt, Probabilistic Outputs for Support Vector Machines (1999); with a shift of 0, the scale is an inverse
    temperature (Guo et al., On Calibration of Modern Neural Networks, ICML 2017).
    """
    return 1 / (1 + np.exp(-(slopes * log_odds(probabilities) + intercepts)))


def choose_flat(found: FoundSpans, allowed: np.ndarray | None = None) -> list[int]:
    """Choose the non-overlapping spans with the highest sum of -log(1 - p).

    Each weight is positive, so a span without an overlap is always chosen. Weighted interval scheduling (Kleinberg and
    Tardos, Algorithm Design, section 6.1).

    allowed (np.ndarray | None): whether each span may be chosen; None for all.
    RETURNS (list[int]): numbers of spans, in text order.
    """
    weights = -np.log1p(-np.clip(found.probabilities, EPSILON, 1 - EPSILON))  # (spans,)
    order = np.lexsort((found.starts, found.ends))
    order = order if allowed is None else order[allowed[order]]
    ends = found.ends[order]
    before = np.searchsorted(ends, found.starts[order], side="right").tolist()  # how many spans end before each begins
    best = [0.0]  # highest sum of the first spans, sorted by end
    for place, number in enumerate(order.tolist()):
        best.append(max(best[-1], float(weights[number]) + best[before[place]]))
    chosen, place = [], len(order)  # back: a span is chosen if the sum needed it
    while place:
        number = int(order[place - 1])
        if float(weights[number]) + best[before[place - 1]] > best[place - 1]:
            chosen.append(number)
            place = before[place - 1]
        else:
            place -= 1
    return chosen[::-1]
