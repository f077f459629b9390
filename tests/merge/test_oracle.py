"""The merge against an oracle, written from its contract alone, on lists of dicts in memory.

Every row and span gets one fate; the ledger counts fates. Comments name cases that the contract leaves open.
"""

import json
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import murmurhash
import pytest
import spacy
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from spacy.tokens import DocBin

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS
from labelwise.base.text import text_key
from labelwise.corpus.dropped_spans import find_dropped
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.queries import where
from labelwise.corpus.tables import read_groups
from labelwise.merge.rules.policies import Annotators, Policies
from tests.conftest import Merging

NLP = spacy.blank("en")
PROBLEMS = (*ROW_PROBLEMS, *SPAN_PROBLEMS)
SIGNS = ("_session_id", "_annotator_id", "_timestamp")  # of an answer
COMPLETE, BINARY = ("ner_manual", "spans_manual", "blocks", None), ("ner", "spans")
COUNTERS = (
    "rows",
    "spans",
    "texts",
    "words",
    "datasets",
    "partly",
    "undeclared",
    "near_duplicates",
    "split_conflict",
    "replaced",
    "renamed",
)
Key = tuple[int, int, str]
Says = dict[Key, tuple[str, ...]]  # the names of the datasets that say so


class Oracle:
    """What merging datasets gives.

    hashed (dict): split of each text by its hash, for texts without a declared one.
    """

    def __init__(self, datasets: list[dict], policies: Policies, hashed: dict[str, str]) -> None:
        self.policies = policies
        self.labels = list(dict.fromkeys(label for dataset in datasets for label in dataset["labels"]))
        self.ledger: dict[str, Any] = {name: Counter() for name in COUNTERS}
        self.ledger |= {"rows_read": 0, "spans_read": 0, "other checks": set()}
        self.ledger["labels"] = {label: Counter() for label in self.labels}
        self.ledger["agreement"] = {}
        self.ledger["pairs"] = {}
        self.ledger["gold"] = {}
        self.docs: dict[str, dict] = {}
        self.dropped_spans: Counter[tuple] = Counter()
        self.problems: Counter[tuple] = Counter()
        tasks = [task | {"number": n} for n, dataset in enumerate(datasets) for task in self.read(dataset)]
        first: dict[tuple[str, ...], str] = {}
        for task in tasks:
            first.setdefault(words_of(task["text"]), task["text"])
        tasks = [moved(task, first[words_of(task["text"])]) for task in tasks]
        self.ledger["same_texts"] = len({task["text before"] for task in tasks}) - len(first)
        for text in first.values():
            self.merge_text(text, [task for task in tasks if task["text"] == text], hashed[text])
        self.ledger["split_conflict"] = Counter(
            {
                pair: n
                for pair, n in self.ledger["split_conflict"].items()
                if n >= 0.1 * self.ledger["datasets"][json.loads(pair)[0]]  # fewer aren't warned of
            }
        )
        self.ledger["dropped_spans"] = {
            reason.removesuffix(", learned"): Counter() for _, reason, _ in self.dropped_spans
        }
        for (_, reason, spans), count in self.dropped_spans.items():
            self.ledger["dropped_spans"][reason.removesuffix(", learned")][
                ", ".join(label for _, _, label, *_ in spans)
            ] += count

    def read(self, dataset: dict) -> list[dict]:
        tasks = []
        for line, row in enumerate(dataset["rows"], 1):
            if isinstance(row, str) and not row.strip():
                continue
            self.ledger["rows_read"] += 1
            self.ledger["datasets"][dataset["name"]] += 1
            if problem := unreadable(row):
                self.ledger["rows"][problem] += 1
                self.problems[dataset["name"], line, problem] += 1
            else:
                tasks.append(self.rename(task_of(dataset, line, row), dataset.get("rename", {})))
                self.ledger["spans_read"] += len(tasks[-1]["spans"])
        if all(task["kind"] == "unanswered" for task in tasks):
            tasks = [task | {"kind": "complete"} for task in tasks]
        return tasks

    def rename(self, task: dict, names: dict[str, str]) -> dict:
        new = []
        for span in task["spans"]:
            old = span.get("label")
            if isinstance(old, str) and old in names:
                self.ledger["renamed"][f"{task['name']}: {old} to {names[old]}"] += 1
            new.append({**span, "label": names.get(old, old)} if isinstance(old, str) else span)
        return task | {"spans": new}

    def merge_text(self, text: str, tasks: list[dict], split: str) -> None:
        # The contract takes from traceless tasks alone the power to declare a split: a rejected task has it.
        declared = {task["split"] for task in tasks if not traceless(task)} - {"auto"}
        split = next((name for name in ("test", "dev", "train") if name in declared), split)
        present = [task for task in tasks if not traceless(task) and (not declared or task["split"] in ("auto", split))]
        able = [task for task in present if not repeats(task, present)]
        self.compare_versions(text, able)
        claims: list[dict] = []
        covered: dict[str, str] = {}
        for task in tasks:
            fate, counting = fate_of_row(task, able, self.policies)
            fate = "same answer" if task in present and task not in able else fate
            self.ledger["rows"][fate] += 1
            if fate == "unknown answer":
                self.problems[task["name"], task["line"], fate] += 1
            if task in able and task["kind"] == "complete":
                for label in set(task["labels"]) - set(counting):
                    last, *others = standing_for(task, able, label, self.policies)
                    replaced = not others and last["name"] != task["name"]
                    self.ledger["replaced"][f"{task['name']} by {last['name']}"] += replaced
            if fate == "split conflict":
                owner = next(other["name"] for other in present if other["split"] == split)
                self.ledger["split_conflict"][f'["{task["name"]}","{owner}"]'] += 1
            if fate != "merged":
                self.ledger["spans"][f"in {fate} task"] += len(task["spans"])
                continue
            task["counting"] = counting
            claims += [claim for span in task["spans"] for claim in self.claims_of(span, task)]
            if task["kind"] == "complete":
                covered |= dict.fromkeys(counting, "complete")
        covered = {claim["key"][2]: "partial" for claim in claims} | covered
        uncovered = {label: covered.get(label, "none") for label in self.labels if covered.get(label) != "complete"}
        for label in self.labels:
            self.ledger["labels"][label][covered.get(label, "none")] += 1
        voting = [
            task
            for task in tasks
            if task["kind"] == "complete" and fate_of_row(task, able, self.policies)[0] == "merged"
        ]
        accepted, rejected = self.settle(text, claims, voting)
        if not covered:
            self.ledger["texts"]["no usable answer"] += 1
        elif uncovered and split == "train" and self.policies.coverage == "drop":
            self.ledger["texts"]["not fully annotated"] += 1
            self.ledger["spans"]["text not fully annotated"] += len(accepted) + len(rejected)
        else:
            self.ledger["texts"][split] += 1
            self.ledger["partly"][split] += bool(uncovered)
            self.ledger["words"][split] += len(tokens_of(text))
            if accepted:
                self.ledger["gold"].setdefault(split, Counter()).update(key[2] for key in accepted)
            self.docs[text] = {"split": split, "uncovered": uncovered} | self.doc_of(
                text, accepted, rejected, uncovered
            )

    def compare_versions(self, text: str, able: list[dict]) -> None:
        """Count agreement between every two annotators' latest accepted answers, except reviews."""
        tasks = [
            task for task in able if task["kind"] == "complete" and task["answer"] == "accept" and not task["review"]
        ]
        met = set()
        for label in self.labels:
            people = dict.fromkeys(task["who"] for task in tasks if label in task["labels"])
            latest = {
                who: latest_of([task for task in tasks if task["who"] == who and label in task["labels"]])
                for who in people
            }
            versions = [
                (who[1], {place for span in task["spans"] if (place := accepted_place(text, span, label))})
                for who, task in latest.items()
            ]
            if len(versions) > 1:
                counts = self.ledger["agreement"].setdefault(label, Counter())
                counts["texts"] += 1
                versions.sort(key=lambda version: version[0])
                for place, (who, _) in enumerate(versions):  # an annotator may have a dataset's name
                    before = [version[0] for version in versions[:place]].count(who)
                    versions[place] = (f"{who} ({before + 1})" if before else who, versions[place][1])
                for (ann, one), (bob, other) in combinations(versions, 2):
                    counts["both"] += len(one & other)
                    counts["spans"] += len(one) + len(other)
                    pair = self.ledger["pairs"].setdefault((ann, bob), Counter())
                    pair.update(texts=(ann, bob) not in met, both=len(one & other), spans=len(one) + len(other))
                    met.add((ann, bob))

    def claims_of(self, span: dict, task: dict) -> list[dict]:
        """Return a span's claim that stands, if any; count an unusable one."""
        start, end, label, text = whole(span.get("start")), whole(span.get("end")), span.get("label"), task["text"]
        verdict = span.get("answer") or (task["answer"] if task["kind"] == "binary" else "accept")
        fate = "invalid"
        if is_number(start, int) and is_number(end, int) and 0 <= start < end <= len(text):
            inside = [i for i in range(start, end) if not text[i].isspace()]
            if inside and isinstance(label, str):
                start, end = inside[0], inside[-1] + 1
                fate = "ignored" if verdict not in ("accept", "reject") else ""
                fate = fate if label in task["labels"] else "undeclared label"
        if fate in ("", "ignored") and task["kind"] == "complete" and label not in task["counting"]:
            fate = "superseded"
        if not fate:
            return [{"key": (start, end, label), "verdict": verdict, "task": task}]
        self.ledger["spans"][fate] += 1
        if fate not in ("ignored", "superseded"):
            self.problems[task["name"], task["line"], fate] += 1
        if fate == "undeclared label":
            self.ledger["undeclared"][f"{task['name']}: {label}"] += 1
        return []

    def vote(self, text: str, claims: list[dict], voting: list[dict]) -> list[dict]:
        """Drop and count claims that too few annotators made."""
        out: list[dict] = []
        for label in self.labels:
            tasks = [task for task in voting if label in task["counting"]]
            reviews = [task for task in tasks if task["review"]]
            last = latest_of(reviews) if reviews else None
            judges = [last["who"]] if last else list(dict.fromkeys(task["who"] for task in tasks))
            if len({str(task["who"]) for task in tasks}) < 2 or (self.policies.annotators == "union" and not last):
                continue
            accepted = [claim for claim in claims if claim["verdict"] == "accept" and claim["key"][2] == label]
            accepted = [claim for claim in accepted if any(claim["task"] is task for task in tasks)]
            marks = [
                {c["key"][:2] for c in accepted if c["task"]["who"] == judge and last in (None, c["task"])}
                for judge in judges
            ]
            needed = len(judges) if self.policies.annotators == "all" else (len(judges) + 1) // 2
            standing = what_stands(marks, needed)
            lost = [claim for claim in accepted if claim["key"][:2] not in standing]
            keys = sorted({claim["key"] for claim in lost})
            self.ledger["spans"].update({"outvoted": len(keys), "duplicate": len(lost) - len(keys)})
            self.ledger["labels"][label]["outvoted"] += len(keys)
            for key in keys:
                winners = sorted({c["key"] for c in accepted if c not in lost and clash(c["key"], key)})[:1]
                spans = (
                    (*span, "accept", tuple(sorted({c["task"]["name"] for c in accepted if c["key"] == span})))
                    for span in (key, *winners)
                )
                self.dropped_spans[text, "outvoted", tuple(spans)] += 1
            out += lost
        return [claim for claim in claims if not any(claim is lost_claim for lost_claim in out)]

    def settle(self, text: str, claims: list[dict], voting: list[dict]) -> tuple[Says, Says]:
        """Divide claims about a span into accepted and rejected ones."""
        standing = [claim for claim in claims if claim_stands(claim, claims, self.policies)]
        self.ledger["spans"]["superseded"] += len(claims) - len(standing)
        voted = self.vote(text, standing, voting)
        standing = [claim for claim in voted if not self.taken_back(claim, voted)]
        self.ledger["spans"]["superseded"] += len(voted) - len(standing)
        by_verdict: dict[str, Says] = {"accept": {}, "reject": {}}
        for claim in standing:
            verdict, key = claim["verdict"], claim["key"]
            self.ledger["spans"]["duplicate"] += key in by_verdict[verdict]
            by_verdict[verdict][key] = tuple(sorted({*by_verdict[verdict].get(key, ()), claim["task"]["name"]}))
        for key in by_verdict["accept"].keys() & by_verdict["reject"].keys():
            kept = {"accept-wins": "accept", "reject-wins": "reject"}[self.policies.conflicts]
            lost = "reject" if kept == "accept" else "accept"
            self.ledger["spans"]["conflict"] += 1
            spans = tuple((*key, verdict, by_verdict[verdict][key]) for verdict in (lost, kept))
            self.dropped_spans[text, "conflict", spans] += 1
            del by_verdict[lost][key]
        return by_verdict["accept"], by_verdict["reject"]

    def taken_back(self, claim: dict, claims: list[dict]) -> bool:
        """Return whether the dataset's latest verdict on the span is the opposite."""
        rivals = [c for c in claims if c["key"] == claim["key"] and c["task"]["name"] == claim["task"]["name"]]
        last = latest_of([rival["task"] for rival in rivals])
        return self.policies.duplicates == "latest" and not any(
            rival["task"] is last and rival["verdict"] == claim["verdict"] for rival in rivals
        )

    def doc_of(self, text: str, accepted: Says, rejected: Says, uncovered: dict[str, str]) -> dict[str, Any]:
        """Describe the doc, and count the fates of its spans."""
        places = {key: place(text, key, self.policies.alignment) for key in accepted}  # in numbers of tokens
        chars = {key: chars_of(text, places[key], key[2]) for key in accepted if places[key]}
        entities: list[Key] = []
        losers: dict[Key, tuple] = {}
        for key in sorted(accepted, key=self.rank):
            # Where a span overlaps several, the contract doesn't say which one is named: the first in the text.
            winners = [other for other in entities if {*places[other]} & {*places[key]}]
            winners = sorted(winners, key=places.__getitem__)[:1]
            fate = overlap(key, winners[0]) if winners else "entity" if places[key] else "misaligned"
            self.ledger["spans"][fate] += 1
            self.ledger["labels"][key[2]].update(["gold", fate] + ["realigned"] * (chars.get(key, key) != key))
            if fate == "entity":
                entities.append(key)
            else:
                spans = tuple((*claim, "accept", accepted[claim]) for claim in (key, *winners))
                losers[key] = fate, spans
        learned: list[Key] = []  # by a head for each label: the longest in tokens, the first of those, or the entity
        for key in sorted(chars, key=lambda key: (-len(places[key]), places[key], key in losers, key)):
            clash = any(other[2] == key[2] and {*places[other]} & {*places[key]} for other in learned)
            learned += [] if clash else [key]
        for key, (fate, spans) in losers.items():
            self.ledger["labels"][key[2]]["overlapping"] += key in learned
            self.dropped_spans[text, fate + ", learned" * (key in learned), spans] += 1
        incorrect = sorted(key for key in rejected if place(text, key, "drop"))
        self.ledger["spans"]["rejected"] += len(incorrect)
        self.ledger["spans"]["rejected, misaligned"] += len(rejected) - len(incorrect)
        for _, _, label in rejected:
            self.ledger["labels"][label]["rejected"] += 1
        iob = ["" if uncovered and self.policies.coverage != "outside" else "O"] * len(tokens_of(text))
        for key in accepted:
            for i in [] if places[key] else place(text, key, "expand"):
                iob[i] = ""
        for key in entities:
            for i in places[key]:
                iob[i] = "B" if i == places[key][0] else "I"
        gold = sorted((*key, names) for key, names in accepted.items())
        ents = sorted(chars[key] for key in entities)
        return {"gold": gold, "spans": sorted(chars.values()), "incorrect": incorrect, "entities": ents, "iob": iob}

    def rank(self, key: Key) -> tuple[int, ...]:
        """Return a sort key of overlapping spans, by length in characters as annotated."""
        length, label, start = key[1] - key[0], self.labels.index(key[2]), key[0]
        return (label, start, -length) if self.policies.overlap == "first" else (-length, label, start)


def is_number(value: Any, *kinds: type) -> bool:
    """Return whether a value is of exactly these types: JSON's true isn't 1."""
    return type(value) in kinds


def whole(value: Any) -> Any:
    """Read 5.0, as tables write it, and "5" as 5."""
    if is_number(value, str) and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    return int(value) if is_number(value, float) and value == int(value) else value


def accepted_place(text: str, span: dict, label: str) -> tuple[int, int] | None:
    """Return the usable, accepted place of a complete task's span of a label, or None."""
    start, end = whole(span.get("start")), whole(span.get("end"))
    if span.get("label") != label or span.get("answer") not in (None, "accept"):
        return None
    if not (is_number(start, int) and is_number(end, int) and 0 <= start < end <= len(text)):
        return None
    inside = [i for i in range(start, end) if not text[i].isspace()]
    return (inside[0], inside[-1] + 1) if inside else None


def words_of(text: str) -> tuple[str, ...]:
    """Return the words in NFC: equal if the merge joins the texts."""
    return tuple(unicodedata.normalize("NFC", text).split())


def letters_of(text: str) -> list[tuple[int, int]]:
    """Return the places of the letters with their accents, without white space."""
    starts = [i for i, char in enumerate(text) if not unicodedata.combining(char)]
    places = zip(starts, [*starts[1:], len(text)], strict=True)
    return [(start, end) for start, end in places if not text[start].isspace()]


def moved(task: dict, text: str) -> dict:
    """Move a task's spans to a text with the same letters, but other white space or composition."""
    own = task["text"]
    before, after = letters_of(own), letters_of(text)

    def place(start: Any, end: Any) -> dict[str, Any]:
        if text == own or not (is_number(start, int) and is_number(end, int) and 0 <= start < end <= len(own)):
            return {}
        inside = [new for old, new in zip(before, after, strict=True) if start < old[1] and old[0] < end]
        cut = [old for old in before if old[0] < start < old[1] or old[0] < end < old[1]]
        return {"start": inside[0][0], "end": inside[-1][1]} if inside and not cut else {"start": None, "end": None}

    spans = [{**span, **place(span.get("start"), span.get("end"))} for span in task["spans"]]
    return {**task, "text": text, "spans": spans, "text before": own}


def unreadable(row: Any) -> str:
    """Name a row's problem, if any; NO_JSON stands for all that isn't JSON."""
    if isinstance(row, str) and row in NO_JSON:
        return "bad JSON"
    if not isinstance(row, dict) or not isinstance(row.get("text"), str | None):
        return "malformed"
    spans = row.get("spans")
    if spans is not None and not (isinstance(spans, list) and all(isinstance(span, dict) for span in spans)):
        return "malformed"
    return "" if (row.get("text") or "").strip() else "no text"


def task_of(dataset: dict, line: int, row: dict) -> dict[str, Any]:
    """Collect what counts of a row and its dataset."""
    spans = row.get("spans") or []
    if spans and (spans[0].get("start") is None or not isinstance(spans[0].get("label"), str)):  # not Prodigy's keys
        spans = [span | {"label": only_of(span["label"])} if "label" in span else span for span in spans]
    view = row.get("view_id") if row.get("_view_id") == "review" else row.get("_view_id")
    if dataset["kind"] != "auto":
        kind = dataset["kind"]  # the contract doesn't say that this makes interfaces that aren't for spans count
    elif view not in COMPLETE + BINARY:
        kind = "other"
    elif row.get("_is_binary") is not None:
        kind = "binary" if row["_is_binary"] else "complete"
    elif row.get("no_missing"):
        kind = "complete"
    elif "answer" not in row and all(row.get(key) is None for key in ("spans", "_view_id", *SIGNS)):
        kind = "unanswered"
    else:
        answered = view is None and any(span.get("answer") is not None for span in spans)
        kind = "binary" if view in BINARY or answered else "complete"
    time = row["_timestamp"] if is_number(row.get("_timestamp"), int, float) else None
    task = {"text": row["text"], "spans": spans, "answer": row.get("answer", "accept"), "kind": kind, "time": time}
    names = [row.get(key) for key in ("_annotator_id", "_session_id")]
    named = [name for name in names if isinstance(name, str) and name]
    task["who"] = ("annotator", named[0]) if named else ("dataset", dataset["name"])
    task["signed"] = named[:1]
    task["review"] = row.get("_view_id") == "review"
    return task | {"line": line} | {name: dataset[name] for name in ("name", "labels", "split")}


def only_of(value: Any) -> Any:
    """Return the only value of a list; anything else as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def traceless(task: dict) -> str:
    """Name the reason why a task counts for nothing."""
    if task["answer"] not in ("accept", "reject"):
        return "ignored" if task["answer"] == "ignore" else "unknown answer"
    return {"other": "unsupported interface", "unanswered": "not annotated"}.get(task["kind"], "")


def latest_of(tasks: list[dict]) -> dict:
    """Return the latest task: by time if all have one, then by dataset and line."""
    timed = all(task["time"] is not None for task in tasks)
    return max(tasks, key=lambda task: (task["time"] if timed else 0, task["number"], task["line"]))


def facts_of(task: dict) -> tuple:
    """Return what is equal in two rows of one answer."""
    spans = []
    for span in task["spans"]:
        label, answer = span.get("label"), span.get("answer")
        place = accepted_place(task["text"], {**span, "answer": None}, label) if isinstance(label, str) else None
        answer = answer if answer is None or isinstance(answer, str) else "ignore"
        spans.append(str((*(place or (0, 0)), str(label), answer)))
    return (task["kind"], task["answer"], task["time"], task["signed"], sorted(spans))


def repeats(task: dict, tasks: list[dict]) -> bool:
    """Return whether another row has the same answer to a question for these labels or more."""
    twins = [other for other in tasks if task["time"] is not None and facts_of(other) == facts_of(task)]
    more = any(set(task["labels"]) < set(other["labels"]) for other in twins)
    equal = [other for other in twins if set(task["labels"]) == set(other["labels"])]
    times = [(other["name"], other["time"]) for other in tasks if other["time"] is not None]
    newest = {name: max(time for own, time in times if own == name) for name, _ in times}
    return more or (bool(equal) and min(equal, key=lambda other: -newest[other["name"]]) is not task)


def rivals_of(task: dict, able: list[dict], label: str) -> list[dict]:
    """List a person's complete tasks about the text and label, in any dataset."""
    tasks = [other for other in able if (other["who"], other["kind"]) == (task["who"], "complete")]
    return [other for other in tasks if label in other["labels"]]


def standing_for(task: dict, able: list[dict], label: str, policies: Policies) -> list[dict]:
    """List those that count: the latest, or all accepted ones."""
    rivals = rivals_of(task, able, label)
    accepts = [other for other in rivals if other["answer"] == "accept"]
    return accepts if accepts and policies.duplicates == "union" else [latest_of(rivals)]


def fate_of_row(task: dict, able: list[dict], policies: Policies) -> tuple[str, list[str]]:
    """Return the outcome of a row, and the labels it counts for; `able` are the tasks that may count."""
    if task not in able:
        return traceless(task) or "split conflict", []
    if task["kind"] == "binary":
        return "merged", task["labels"]
    counting = []
    for label in task["labels"]:
        if task in standing_for(task, able, label, policies):
            counting.append(label)
    if not counting:
        return "superseded", []
    return "merged" if task["answer"] == "accept" else "rejected", counting


def clash(one: Key, other: Key) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def what_stands(marks: list[set], needed: int) -> set:
    """Return the places that at least `needed` annotators marked."""
    places, chosen = set().union(*marks), set()
    while places:
        group = {places.pop()}
        while near := {place for place in places if any(clash(place, other) for other in group)}:
            group |= near
            places -= near
        if sum(bool(group & places) for places in marks) < needed:
            continue
        votes = {place: sum(place in places for places in marks) for place in group}
        if sure := {place for place in group if 2 * votes[place] > len(marks)}:
            chosen |= sure
            continue
        best = [place for place in group if votes[place] == max(votes.values())]
        while best:
            first = min(best, key=lambda place: (place[0] - place[1], place[0]))
            chosen.add(first)
            best = [place for place in best if not clash(place, first)]
    return chosen


def claim_stands(claim: dict, claims: list[dict], policies: Policies) -> bool:
    """Return whether a claim is its dataset's latest on the span; with "union", the latest of its verdict."""
    if claim["task"]["kind"] == "complete":
        return True
    rivals = [c for c in claims if c["key"] == claim["key"] and c["task"]["kind"] == "binary"]
    rivals = [c for c in rivals if c["task"]["name"] == claim["task"]["name"]]
    if policies.duplicates == "union":
        rivals = [c for c in rivals if c["verdict"] == claim["verdict"]]
    # The contract is silent on several claims of one task: the first counts.
    last = latest_of([rival["task"] for rival in rivals])
    return claim is next(rival for rival in rivals if rival["task"] is last)


@lru_cache
def tokens_of(text: str) -> list[tuple[int, int]]:
    return [(token.idx, token.idx + len(token)) for token in NLP(text)]


def place(text: str, key: Key, alignment: str) -> list[int]:
    """Return the indices of a span's tokens; [] if misaligned."""
    touched = [i for i, (start, end) in enumerate(tokens_of(text)) if start < key[1] and key[0] < end]
    inside = [i for i in touched if key[0] <= tokens_of(text)[i][0] and tokens_of(text)[i][1] <= key[1]]
    if alignment == "expand" or inside == touched:
        return touched
    words = [i for i in inside if not text[slice(*tokens_of(text)[i])].isspace()]
    return list(range(words[0], words[-1] + 1)) if words and alignment == "contract" else []


def chars_of(text: str, place: list[int], label: str) -> Key:
    return tokens_of(text)[place[0]][0], tokens_of(text)[place[-1]][1], label


def overlap(one: Key, other: Key) -> str:
    if one[:2] == other[:2]:
        return "same span"
    nested = [a[0] <= b[0] and b[1] <= a[1] for a, b in ((one, other), (other, one))]
    return "nested" if any(nested) else "crossing"


def prodigys_hash(text: str) -> int:
    return murmurhash.hash("text=" + json.dumps(text), 0)


# Equal but for white space, composition or case; marks inside a token; beyond the BMP; of no width; several lines.
TEXTS = ["big cat sat", "big  cat sat", "Big cat sat", " big cat sat\n", "at 60degC in a 5-L cup.", "x", "\u200b"]
TEXTS += ["e\u0301te\u0301 \U0001f600\U0001f469\u200d\U0001f52c, \U00010400", "a\tb\r\n\r\nc (d)", "\xa0don't\u2003go"]
TEXTS += ["\xe9te\u0301\n\U0001f600\U0001f469\u200d\U0001f52c, \U00010400"]
ABSENT: Any = "absent"
NO_JSON = ["{oops", '{"text": "x"} x', '{"text": "\\ud800"}']
NO_TASKS = [*NO_JSON, "", " \t", "[]", "3", "null", {"text": 3}, {"text": None}, {"html": "x"}, {"text": " \u2003\n"}]
NO_SPANS = ["no list", {}, 3, [3], [None], [{"start": 0, "end": 1, "label": "A"}, "no span"]]
NO_FIELD = [None, -1, True, 1.0, "1", 10**30, 99, "A", "B", "undeclared", ["A"], ABSENT]
ANSWERS = ["accept", "reject", "ignore", "maybe", None, ABSENT]
FIELDS: dict[str, list[Any]] = {
    "answer": [ABSENT, *["accept"] * 6, *["reject"] * 4, "ignore", "maybe", None],
    "_view_id": [ABSENT, *["ner_manual"] * 3, *["ner"] * 3, "spans", "spans_manual", "blocks", "review", "choice"],
    "view_id": [*[ABSENT] * 3, "ner", "ner_manual", "classification"],
    "_is_binary": [*[ABSENT] * 8, None, True, False],
    "no_missing": [*[ABSENT] * 8, None, True, False],
    "_timestamp": [ABSENT, 1, 1, 2, 2.0, 1.5, 3, "9", None],
    "_input_hash": [ABSENT, "right", "right", 1, "wrong", None],
    "tokens": [ABSENT, "not read"],
    "_annotator_id": [*[ABSENT] * 3, "ann", "bob", "a", "", None, 3, 10**30, ["ann"]],
    "_session_id": [*[ABSENT] * 3, "ann", "eve", "", None, 1.5, {"name": "ann"}],
}


@st.composite
def places(draw: st.DrawFn, text: str) -> list[list[int]]:
    """Draw places of spans in a text: two tokens, of equal length in some texts, or anything."""
    tokens = tokens_of(text)
    pairs = st.sampled_from([[one[0], other[1]] for one, other in zip(tokens, tokens[1:] or tokens, strict=False)])
    offset = st.sampled_from([edge for token in tokens for edge in token]) | st.integers(0, len(text))
    return draw(st.lists(pairs | st.lists(offset, min_size=2, max_size=2).map(sorted), min_size=1, max_size=4))


@st.composite
def spans(draw: st.DrawFn, places: list[list[int]], labels: list[str], answers: list[str | None]) -> dict[str, Any]:
    start, end = draw(st.sampled_from(places))
    span = {"start": start, "end": end, "label": draw(st.sampled_from([*labels * 4, "C"])), "token_end": 99}
    if not draw(st.integers(0, 14)):
        span |= draw(st.sampled_from([{"start": end, "end": start}, *({odd: bad} for odd in span for bad in NO_FIELD)]))
    span["answer"] = draw(st.sampled_from(answers))
    return {name: value for name, value in span.items() if value != ABSENT}


@st.composite
def rows(draw: st.DrawFn, texts: dict[str, list], labels: list[str]) -> Any:
    if not draw(st.integers(0, 14)):
        return draw(st.sampled_from(NO_TASKS))
    text = draw(st.sampled_from(list(texts)))
    row: dict[str, Any] = {name: draw(st.sampled_from(values)) for name, values in FIELDS.items()} | {"text": text}
    answers = draw(st.sampled_from([[ABSENT], [ABSENT], [ABSENT], ANSWERS]))
    row["spans"] = draw(st.lists(spans(texts[text], labels, answers), max_size=4))
    if not draw(st.integers(0, 14)):
        row["spans"] = draw(st.sampled_from([None, ABSENT, *NO_SPANS]))
    if row["_input_hash"] == "right":
        row["_input_hash"] = prodigys_hash(text)
    return {name: value for name, value in row.items() if value != ABSENT}


@st.composite
def several_datasets(draw: st.DrawFn) -> list[dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True))
    texts = {text: draw(places(text)) for text in chosen}
    datasets = []
    for name in "badc"[: draw(st.sampled_from([2, 1, 3, 4]))]:  # not in the order of their names; labels neither
        labels = draw(st.lists(st.sampled_from("BAC"), min_size=1, max_size=3, unique=True))
        rename = draw(
            st.sampled_from([{}, {}, {"A": "B", "B": "A"}, {"C": "A"}, {"undeclared": "C", "C": "undeclared"}])
        )
        rename = {} if any(old in labels and old not in rename.values() for old in rename) else rename
        kind = draw(st.sampled_from(["auto", "auto", "complete", "binary"]))
        split = draw(st.sampled_from([*["auto"] * 7, "train", "dev", "test"]))
        tasks = draw(st.lists(rows(texts, labels), min_size=draw(st.sampled_from([0, 3, 6])), max_size=9))
        datasets.append({"name": name, "labels": labels, "kind": kind, "split": split, "rename": rename, "rows": tasks})
    if draw(st.booleans()):  # a copy under another name, such as a database beside its export
        datasets.append(
            {**datasets[0], "name": "e", "labels": draw(st.sampled_from([datasets[0]["labels"], ["A", "B", "C"]]))}
        )
        datasets[-1]["rename"] = {} if datasets[-1]["labels"] != datasets[0]["labels"] else datasets[0]["rename"]
    return datasets


def merge(root: Path, datasets: list[dict[str, Any]], policies: Policies) -> dict[str, Any]:
    """Merge for real; describe the outputs as the oracle does."""
    merging = Merging(root)
    for dataset in datasets:
        merging.add(expect_losses=True, **dataset)
    ratios: dict[str, Any] = {"dev_ratio": 0.3, "test_ratio": 0.3}
    ledger = merging.run(policies=policies, docs_per_partition=3, near_duplicates="off", **ratios)
    docs: dict[str, dict[str, Any]] = {}
    for path in sorted((root / "corpus").glob("*/*.spacy")):
        for doc in DocBin().from_disk(path).get_docs(NLP.vocab):
            assert doc.text not in docs, "a text is in the corpus twice"
            groups = {"spans": doc.spans["gold"], "incorrect": doc.spans["incorrect_spans"], "entities": doc.ents}
            docs[doc.text] = {
                name: sorted((s.start_char, s.end_char, s.label_) for s in groups[name]) for name in groups
            }
            data = doc.user_data["labelwise"]
            docs[doc.text]["gold"] = sorted((*span, tuple(names)) for *span, names in data["gold"])
            docs[doc.text] |= {"uncovered": data["uncovered"], "split": path.parent.name}
            docs[doc.text]["iob"] = [token.ent_iob_ for token in doc]
    keys = {text_key(text).hex(): text for text in texts_in(datasets)}
    dropped_spans: Counter[tuple] = Counter()
    problems: Counter[tuple] = Counter()
    for group in read_groups(root / "corpus"):
        for dropped in find_dropped(group):
            outcomes = [
                (*span.span, span.verdict, tuple(span.datasets)) for span in (dropped.dropped, dropped.kept) if span
            ]
            dropped_spans[keys[dropped.text], dropped.reason + ", learned" * dropped.learned, tuple(outcomes)] += 1
        for table in (group.rows, group.spans):
            bad = where(table, "reason", PROBLEMS).to_pylist()
            problems.update((problem["dataset"], problem["line"], problem["reason"]) for problem in bad)
    return {"ledger": described(ledger), "docs": docs, "dropped_spans": dropped_spans, "problems": problems}


def texts_in(datasets: list[dict[str, Any]]) -> set[str]:
    rows = [row for dataset in datasets for row in dataset["rows"] if isinstance(row, dict)]
    return {row["text"] for row in rows if isinstance(row.get("text"), str)}


def described(ledger: Ledger) -> dict[str, Any]:
    """Convert the ledger to numbers, and counters without zeros."""
    data: dict[str, Any] = {name: +Counter(getattr(ledger, name)) for name in ("rows", "spans", "texts", "words")}
    metrics = ledger.metrics()
    data |= {name: metrics[name] for name in ("rows_read", "spans_read", "same_texts")}
    data |= {"partly": +ledger.partly, "near_duplicates": Counter()}  # the latter aren't looked for
    checks = {
        name: [check for check in ledger.checks if check.kind == name]
        for name in {check.kind for check in ledger.checks}
    }
    data["other checks"] = {"out of order", "unknown annotators", "without split key"} & checks.keys()
    data["labels"] = {label: +counts for label, counts in ledger.labels.items()}
    data["gold"] = ledger.gold
    data["agreement"] = {
        label: Counter({name: n for name, n in counts.items() if name != "f"})
        for label, counts in ledger.agreement.items()
    }
    data["pairs"] = ledger.pairs
    data["datasets"] = +Counter({name: counts["rows"] for name, counts in ledger.datasets.items()})
    [data["undeclared"]] = [Counter(check.values["labels"]) for check in checks.get("undeclared labels", [])] or [
        Counter()
    ]
    [data["replaced"]] = [Counter(check.values["datasets"]) for check in checks.get("replaced answers", [])] or [
        Counter()
    ]
    data["split_conflict"] = Counter(
        {f'["{check.dataset}","{check.values["other"]}"]': check.n for check in checks.get("texts of other splits", [])}
    )
    data["renamed"] = +Counter(
        {
            f"{name}: {old} to {new}": n
            for name, of in ledger.renamed.items()
            for old, to in of.items()
            for new, n in to.items()
        }
    )
    data["dropped_spans"] = {
        reason: flat(of, "{}, {}", lambda labels: labels.removesuffix(", "))
        for reason, of in ledger.dropped_spans.items()
    }
    return data


def flat(table: dict[str, Counter[str]], form: str, change: Callable[[str], str] = str) -> Counter[str]:
    return Counter({change(form.format(one, other)): n for one, of in table.items() for other, n in of.items()})


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    splits = {}
    for text in TEXTS:
        alone = {"name": "a", "labels": ["A"], "rows": [{"text": text}]}
        [doc] = merge(tmp_path_factory.mktemp("hashed"), [alone], Policies())["docs"].values()
        splits[text] = doc["split"]
    assert set(splits.values()) == {"train", "dev", "test"}
    return splits


VALUES: dict[str, list[Any]] = {
    "duplicates": ["latest", "union"],
    "conflicts": ["accept-wins", "reject-wins"],
    "overlap": ["longest", "first"],
    "coverage": ["by-label", "drop", "outside"],
    "alignment": ["drop", "expand", "contract"],
}
SHARES = ("half", "all", "union")
ALL_POLICIES = [
    Policies(annotators=SHARES[number % 3], **dict(zip(VALUES, values, strict=True)))
    for number, values in enumerate(product(*VALUES.values()))
]


def test_the_oracle_knows_all_values_of_all_policies() -> None:
    known = {name: [*get_args(kind)] for name, kind in get_type_hints(Policies).items() if get_args(kind)}
    assert known == VALUES
    assert get_args(Annotators) == SHARES


# Every fifth of 108 combinations: each value of a policy is combined with each value of another.
@pytest.mark.guarantee("contract")
@pytest.mark.guarantee("one-bad-line")
@pytest.mark.parametrize("number", range(0, len(ALL_POLICIES), 5))
def test_merging_is_what_the_contract_says(number: int, hashed: dict[str, str]) -> None:
    policies = ALL_POLICIES[number]

    # A seed for each, because each needs other data; equal policies in a row, since settings cost a new tokenizer.
    @seed(number)
    @settings(deadline=None, database=None, max_examples=10, phases=[Phase.generate, Phase.shrink])
    @given(several_datasets())
    def check(datasets: list[dict[str, Any]]) -> None:
        oracle = Oracle(datasets, policies, hashed)
        with tempfile.TemporaryDirectory() as root:
            outputs = merge(Path(root), datasets, policies)
        assert outputs == {name: getattr(oracle, name) for name in outputs}

    check()


COLLIDING = [("cat 62939 sat", "cat 118625 sat"), ("cat 89297 sat", "cat 130867 sat")]


@pytest.mark.guarantee("opaque")
@pytest.mark.parametrize("stored", [False, True])
def test_texts_whose_32_bit_hashes_are_equal_stay_two_documents(tmp_path: Path, stored: bool) -> None:
    tasks: dict[str, list] = {"A": [], "B": []}
    expected = {}
    for one, other in COLLIDING:
        assert prodigys_hash(one) == prodigys_hash(other)
        end = len(other) - 4  # of the number
        for text, start, stop, label in ((one, 0, 3, "A"), (other, 4, end, "A"), (other, 0, 3, "B")):
            task = {"text": text, "spans": [{"start": start, "end": stop, "label": label}]}
            tasks[label].append(task | ({"_input_hash": prodigys_hash(one)} if stored else {}))
        expected[one] = ([(0, 3, "A", ("a",))], [(0, 3, "A")], {"B": "none"})
        expected[other] = ([(0, 3, "B", ("b",)), (4, end, "A", ("a",))], [(0, 3, "B"), (4, end, "A")], {})
    datasets = [{"name": label.lower(), "labels": [label], "rows": tasks[label]} for label in tasks]
    outputs = merge(tmp_path, datasets, Policies())
    assert {text: (doc["gold"], doc["entities"], doc["uncovered"]) for text, doc in outputs["docs"].items()} == expected
    assert outputs["ledger"]["rows"] == {"merged": 3 * len(COLLIDING)}
