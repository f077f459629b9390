"""What spaCy's ner can do at each token: for all states of a batch at a time.

spaCy's ner is a parser. It goes through a text token by token, and at each of them takes an action, such as B-Reagent:
here begins a Reagent. A state is how far it got in a text, and which entity is open.

The rules are those of spaCy 3.8 (spacy/pipeline/_parser_internals/ner.pyx), which looks at each action of each state by
itself. Here, what can be done where no entity is open is an array, made once a batch; where one is open, there are but
two actions, to go on with it or to end it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.attrs import ENT_IOB, IS_SPACE, SENT_START
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc

MISSING, BEGIN, IN, LAST, UNIT, OUT = range(6)
"""Kinds of actions, and what is known of a token."""


class Unusual(Exception):
    """A batch has something that only spaCy's own update knows what to do with."""


class Actions(NamedTuple):
    """The actions of an ner, which are numbers.

    size (int): how many there are.
    names (list): the labels.
    labels (dict): the number of each label, by its hash.
    of (np.ndarray): of shape (kinds, labels): the action of a kind for a label; OUT has none.
    out (int): the action of a token that is in no entity.
    kinds (np.ndarray): the kind of each action.
    label_of (np.ndarray): the number of each action's label.
    """

    size: int
    names: list[str]
    labels: dict[int, int]
    of: np.ndarray
    out: int
    kinds: np.ndarray
    label_of: np.ndarray

    @classmethod
    def read(cls, ner: EntityRecognizer) -> "Actions":
        """Read the actions of an ner that is initialized.

        RAISES (Unusual): it isn't, or a label hasn't all actions.
        """
        names = [ner.moves.get_class_name(number) for number in range(ner.moves.n_moves)]
        labels = list(dict.fromkeys(name[2:] for name in names if name[2:]))
        numbers = {label: number for number, label in enumerate(labels)}
        of = np.full((OUT, len(labels)), -1)
        kinds, label_of = np.full(len(names), MISSING), np.full(len(names), -1)
        for number, name in enumerate(names):
            if name[2:]:
                kinds[number], label_of[number] = "MBILU".index(name[0]), numbers[name[2:]]
                of[kinds[number], label_of[number]] = number
        if "O" not in names or (of[BEGIN:] < 0).any():
            raise Unusual
        kinds[names.index("O")] = OUT
        hashes = {ner.vocab.strings[label]: number for label, number in numbers.items()}
        return cls(len(names), labels, hashes, of, names.index("O"), kinds, label_of)


class Tokens(NamedTuple):
    """The tokens of a batch, one text after the other; arrays have a row for each token.

    lengths (list): the number of each text's tokens.
    space (np.ndarray): whether a token is white space.
    continues (np.ndarray): whether an entity can go on after it.
    valid (np.ndarray): of shape (tokens, actions): what can be done where no entity is open.
    actions (Actions): those of the ner.
    """

    lengths: list[int]
    space: np.ndarray
    continues: np.ndarray
    valid: np.ndarray
    actions: Actions

    def first_states(self) -> "States":
        """Make a state at the beginning of each text that has tokens."""
        ends = np.cumsum(self.lengths)
        filled = np.array(self.lengths) > 0
        none = np.full(filled.sum(), -1)
        return States((ends - self.lengths)[filled], ends[filled], none, none)


class States(NamedTuple):
    """How far texts have been read; arrays have a row for each state.

    at (np.ndarray): the next token.
    ends (np.ndarray): where its text ends.
    starts (np.ndarray): where the open entity starts; -1 if none is open.
    labels (np.ndarray): the number of its label; -1 if none is open.
    """

    at: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    labels: np.ndarray

    @classmethod
    def joined(cls, parts: "Iterable[States]") -> "States":
        """Put states one after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def after(self, chosen: np.ndarray, actions: Actions) -> "States":
        """Take an action in each, and leave out those that are then at the end of their text."""
        left = np.flatnonzero(self.at + 1 < self.ends)
        at, chosen = self.at[left], chosen[left]
        kinds = actions.kinds[chosen]
        is_open = (kinds == BEGIN) | (kinds == IN)
        starts = np.where(kinds == BEGIN, at, self.starts[left])
        return States(
            at + 1, self.ends[left], np.where(is_open, starts, -1), np.where(is_open, actions.label_of[chosen], -1)
        )

    def looked_at(self, places: int) -> np.ndarray:
        """Give the tokens that the model looks at, of shape (states, places); -1 where there is none.

        Of three places: the next token, and of the open entity the first, and the last one so far. Of six: the next
        token, and the first five of the open entity.
        """
        is_open = self.starts >= 0
        if places == 3:
            return np.stack([self.at, self.starts, np.where(is_open, self.at - 1, -1)], axis=1)
        inside = self.starts[:, None] + np.arange(places - 1)
        inside[~is_open[:, None] | (inside >= self.at[:, None])] = -1
        return np.concatenate([self.at[:, None], inside], axis=1)


def find_valid(states: States, tokens: Tokens) -> np.ndarray:
    """Find what can be done in each state; of shape (states, actions)."""
    valid = tokens.valid[states.at]
    if (rows := np.flatnonzero(states.starts >= 0)).size:
        valid[rows] = False
        valid[rows, tokens.actions.of[LAST, states.labels[rows]]] = True
        valid[rows, tokens.actions.of[IN, states.labels[rows]]] = tokens.continues[states.at[rows]]
    return valid


def read_tokens(docs: Sequence[Doc], actions: Actions) -> Tokens:
    """Read the tokens of Docs, of which some are not empty.

    RAISES (Unusual): a Doc has entities already, which the ner would keep.
    """
    lengths = [len(doc) for doc in docs]
    iob, starts, space = read_arrays(docs, [ENT_IOB, SENT_START, IS_SPACE])
    if iob.any():
        raise Unusual
    space = space != 0
    continues = ~last_tokens(lengths) & (following(starts, 0) != 1)
    valid = np.zeros((len(space), actions.size), bool)
    valid[:, actions.out] = True
    valid[np.ix_(~space, actions.of[UNIT])] = True
    valid[np.ix_(~space & continues, actions.of[BEGIN])] = True
    return Tokens(lengths, space, continues, valid, actions)


def read_arrays(docs: Sequence[Doc], attrs: list[int | str]) -> np.ndarray:
    """Read attributes of the tokens of Docs; a row for each attribute."""
    return np.concatenate([doc.to_array(attrs).reshape(-1, len(attrs)) for doc in docs]).T


def last_tokens(lengths: Sequence[int]) -> np.ndarray:
    """Tell of each token whether it is the last one of its text."""
    last = np.zeros(sum(lengths), bool)
    last[np.cumsum(lengths)[np.array(lengths) > 0] - 1] = True
    return last


def following(values: np.ndarray, at_end: int) -> np.ndarray:
    """Give each token the value of the next one."""
    return np.append(values[1:], np.asarray(at_end, values.dtype))
