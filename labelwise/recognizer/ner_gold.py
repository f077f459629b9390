"""What spaCy's ner is to learn: what its actions cost, for all states of a batch at a time.

An action costs something if it is against the gold; those that cost least are what the ner is to learn. The rules are
those of spaCy 3.8 (spacy/pipeline/_parser_internals/ner.pyx), as in `ner_states`.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE, IDX, LENGTH
from spacy.tokens import Doc
from spacy.training import Example

from labelwise.recognizer.ner_states import (
    BEGIN,
    IN,
    LAST,
    MISSING,
    OUT,
    UNIT,
    Actions,
    States,
    Tokens,
    Unusual,
    following,
    last_tokens,
    read_arrays,
)

I, O, B = 1, 2, 3  # noqa: E741  a token's ENT_IOB, 0 where nothing is known

INVALID = 9
"""More than any action costs."""


class Gold(NamedTuple):
    """What is known of the tokens of a batch; arrays have a row for each token.

    kinds (np.ndarray): MISSING, OUT, or of its entity the BEGIN, IN, LAST, or all of it, UNIT.
    labels (np.ndarray): the number of its entity's label; -1 if it is in none.
    targets (np.ndarray): of shape (tokens, actions): where no entity is open, what costs least of what can be done.
    free (np.ndarray): whether the targets cost nothing.
    going_on (np.ndarray): of shape (2, tokens): what it costs to go on with an entity that may still be right, and with
        one that is wrong already.
    rejected (np.ndarray): the rejected spans, as numbers; see `span_numbers`.
    """

    kinds: np.ndarray
    labels: np.ndarray
    targets: np.ndarray
    free: np.ndarray
    going_on: np.ndarray
    rejected: np.ndarray


def find_targets(states: States, tokens: Tokens, gold: Gold) -> tuple[np.ndarray, np.ndarray]:
    """Find what costs least of that which can be done in each state, if it doesn't cost more than 1.

    RETURNS (tuple): these, of shape (states, actions); and whether they cost nothing, of shape (states,).
    """
    targets, free = gold.targets[states.at], gold.free[states.at]
    if (rows := np.flatnonzero(states.starts >= 0)).size:
        at, starts, labels = states.at[rows], states.starts[rows], states.labels[rows]
        begins = (gold.kinds[starts] == BEGIN) | (gold.kinds[starts] == UNIT)
        is_wrong = ~begins | (gold.labels[starts] != labels)
        going_on = np.where(tokens.continues[at], gold.going_on[is_wrong.astype(np.int8), at], INVALID)
        ending = ((gold.kinds[at] == IN) & ~is_wrong).astype(np.int8)
        if gold.rejected.size:
            ending += np.isin(span_numbers(starts, at + 1, labels, len(gold.kinds)), gold.rejected)
        least = np.minimum(going_on, ending)
        targets[rows] = False
        targets[rows, tokens.actions.of[LAST, labels]] = (ending == least) & (least < 2)
        targets[rows, tokens.actions.of[IN, labels]] = (going_on == least) & (least < 2)
        free[rows] = least == 0
    return targets, free


def span_numbers(starts: np.ndarray, ends: np.ndarray, labels: np.ndarray, length: int) -> np.ndarray:
    """Number spans of a batch of `length` tokens, each differently."""
    return (labels * (length + 1) + starts) * (length + 1) + ends


def read_gold(examples: Sequence[Example], tokens: Tokens, rejected_key: str | None) -> Gold:
    """Read what is known of the tokens of a batch.

    rejected_key (str | None): where `doc.spans` has the rejected spans.
    RAISES (Unusual): the gold has other tokens; an entity has a label that the ner doesn't know, or is rejected, too.
    """
    actions, lengths = tokens.actions, tokens.lengths
    references = [eg.reference for eg in examples]
    if lengths != [len(doc) for doc in references]:
        raise Unusual
    places = read_arrays([eg.predicted for eg in examples], [IDX, LENGTH])
    start, length, iob, types = read_arrays(references, [IDX, LENGTH, ENT_IOB, ENT_TYPE])
    if (places[0] != start).any() or (places[1] != length).any():
        raise Unusual
    last = last_tokens(lengths)
    kinds, labels = read_entities(iob, types, last, actions)
    kinds[tokens.space & (kinds == MISSING)] = OUT
    rejected = read_rejected(references, actions, rejected_key)
    if any(is_entity(kinds, labels, *span) for span in rejected):
        raise Unusual
    ends = np.repeat(np.cumsum(lengths), lengths)
    costs = np.where(tokens.valid, costs_outside(kinds, labels, ends, rejected, actions), INVALID)
    least = costs.min(axis=1)
    spans = np.array(rejected, int).reshape(-1, 3)
    return Gold(
        kinds,
        labels,
        targets=costs == least[:, None],
        free=least == 0,
        going_on=costs_of_going_on(kinds, last),
        rejected=span_numbers(spans[:, 0], spans[:, 1], spans[:, 2], len(kinds)),
    )


def costs_outside(
    kinds: np.ndarray, labels: np.ndarray, ends: np.ndarray, rejected: Sequence[tuple[int, int, int]], actions: Actions
) -> np.ndarray:
    """Compute what each action costs at each token where no entity is open; of shape (tokens, actions)."""
    costs = np.ones((len(kinds), actions.size), np.int8)
    costs[kinds == MISSING] = 0
    costs[~np.isin(kinds, (BEGIN, UNIT)), actions.out] = 0
    for kind in (BEGIN, UNIT):
        rows = np.flatnonzero(kinds == kind)
        costs[rows, actions.of[kind, labels[rows]]] = 0
    for start, end, label in rejected:
        if end == start + 1:
            costs[start, actions.of[UNIT, label]] += 1
        if ends[start] - start < 3:
            # What begins here can only have two tokens. That the rejected span may have one doesn't matter to spaCy.
            costs[start, actions.of[BEGIN, label]] += 1
    return costs


def costs_of_going_on(kinds: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Compute what it costs at each token to go on with an open entity; see `Gold.going_on`."""
    after = np.where(last, OUT, following(kinds, OUT))
    no_more = np.isin(after, (OUT, MISSING))
    costs = np.zeros((2, len(kinds)), np.int8)
    costs[:, kinds == OUT] = ~no_more[kinds == OUT]
    costs[:, kinds == UNIT] = after[kinds == UNIT] != OUT
    costs[0, kinds == LAST] = 1
    costs[1, kinds == LAST] = ~no_more[kinds == LAST]
    return costs


def read_entities(
    iob: np.ndarray, types: np.ndarray, last: np.ndarray, actions: Actions
) -> tuple[np.ndarray, np.ndarray]:
    """Turn tokens' ENT_IOB and ENT_TYPE into what kind each is, and the numbers of labels, -1 for none.

    last (np.ndarray): whether a token is the last one of its text.
    RAISES (Unusual): a label isn't known, or is missing; an entity has no beginning.
    """
    hashes, which = np.unique(types, return_inverse=True)
    labels = np.array([actions.labels.get(int(one), -1) for one in hashes])[which]
    inside = (iob == I) | (iob == B)
    follows = np.append(False, inside[:-1] & ~last[:-1]) & (labels == np.roll(labels, 1))
    if (inside != (labels >= 0)).any() or (types[~inside] != 0).any() or (~follows & (iob == I)).any():
        raise Unusual
    goes_on = ~last & (following(iob, O) == I)
    kinds = np.select(
        [iob == O, (iob == B) & goes_on, iob == B, (iob == I) & goes_on, iob == I],
        [OUT, BEGIN, UNIT, IN, LAST],
        MISSING,
    )
    return kinds, labels


def read_rejected(docs: Sequence[Doc], actions: Actions, key: str | None) -> list[tuple[int, int, int]]:
    """List the rejected spans of a batch, each once: (start, end, label's number), those of labels that are known."""
    found: dict[tuple[int, int, int], None] = {}
    offset = 0
    for doc in docs:
        for span in doc.spans.get(key, ()) if key else ():
            if span.label in actions.labels:
                found[offset + span.start, offset + span.end, actions.labels[span.label]] = None
        offset += len(doc)
    return list(found)


def is_entity(kinds: np.ndarray, labels: np.ndarray, start: int, end: int, label: int) -> bool:
    """Tell whether a span is an entity of the gold."""
    if labels[start] != label:
        return False
    if end == start + 1:
        return bool(kinds[start] == UNIT)
    return bool(kinds[start] == BEGIN and (kinds[start + 1 : end - 1] == IN).all() and kinds[end - 1] == LAST)


def cut_states(examples: Sequence[Example], tokens: Tokens, gold: Gold, most: int, rejected_key: str | None) -> States:
    """Make the states that an update begins with: one at the beginning of each text, and one after each `most` tokens.

    In the middle of a text, it is the state to which the first action leads that costs nothing, token after token.
    Where nothing is known, neither of a text nor of so many tokens of it, there is no state.

    most (int): the number of tokens; 0 doesn't cut.
    RAISES (Unusual): there is no such action.
    """
    whole, cut = [], []
    for eg, end in zip(examples, accumulate(tokens.lengths), strict=True):
        begin = end - len(eg.reference)
        known = eg.reference.to_array(ENT_IOB) != 0
        rejected = [(span.start, span.end) for span in eg.reference.spans.get(rejected_key, ())] if rejected_key else []
        if not known.any() and not rejected:
            continue
        if not most or end - begin < most:
            whole.append((begin, end, -1, -1))
            continue
        for at, state in enumerate(follow_gold(begin, end, tokens, gold)):
            if at % most == 0 and has_gold(known, rejected, at, at + most):
                cut.append((begin + at, end, *state))
    return States(*np.array(whole + cut, int).reshape(-1, 4).T)


def has_gold(known: np.ndarray, rejected: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Tell whether anything is known of some tokens of a text, as spaCy does.

    It asks for the end of what is cut when that has been read. At the end of the text it is given -1, and so doesn't
    look at the last token; where there is no other one, it looks at the whole text.
    """
    if end >= len(known):
        end = len(known) - 1
    if start == end:
        start, end = 0, len(known)
    return bool(known[start:end].any()) or any(start <= one and other <= end for one, other in rejected)


def follow_gold(begin: int, end: int, tokens: Tokens, gold: Gold) -> Iterator[tuple[int, int]]:
    """Yield, before each token of a text, where the open entity starts, and its label's number; -1 if none is open.

    RAISES (Unusual): each action costs something.
    """
    free, first = gold.free[begin:end].tolist(), gold.targets[begin:end].argmax(axis=1).tolist()
    kinds, continues = gold.kinds[begin:end].tolist(), tokens.continues[begin:end].tolist()
    start = label = -1
    for at in range(begin, end):
        yield start, label
        kind = kinds[at - begin]
        if start < 0:
            action = first[at - begin] if free[at - begin] else -1
        elif kinds[start - begin] == BEGIN and (kind == LAST or (kind == IN and continues[at - begin])):
            # It is an entity of the gold: to begin another one there isn't free.
            action = int(tokens.actions.of[kind, label])
        else:
            targets, is_free = find_targets(States(*np.array([[at], [end], [start], [label]])), tokens, gold)
            action = int(targets.argmax()) if is_free else -1
        if action < 0:
            raise Unusual
        kind = tokens.actions.kinds[action]
        if kind == BEGIN:
            start, label = at, int(tokens.actions.label_of[action])
        elif kind != IN:
            start = label = -1
