import random
import unicodedata

from labelwise.merge.near_duplicates import WORDS


def shingles(text: str) -> set[tuple]:
    words = WORDS.findall(text.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def jaccard(text: str, other: str) -> float:
    return len(shingles(text) & shingles(other)) / len(shingles(text) | shingles(other))


def families(count: int, seed: int = 0) -> list[list[str]]:
    rng = random.Random(seed)
    groups = []
    for number in range(count):
        words = [f"w{rng.randrange(5000)}" for _ in range(100)]
        copy = list(words)
        for place in rng.sample(range(100), number % 12):
            copy[place] = "other"
        groups.append([" ".join(words), " ".join(copy) + " !"])
    return groups


def add(merging, texts, **options) -> None:
    rows = [{"text": text, "meta": {"doc": f"{line}.txt"}} for line, text in enumerate(texts, 1)]
    merging.add("a", ["A"], rows, **options)


def test_pairs_in_two_splits_are_reported_with_their_similarity_and_can_be_kept_in_one(merging):
    text_pairs = families(120)
    add(merging, [text for family in text_pairs for text in family])
    ledger = merging.run(dev_ratio=0.2, test_ratio=0.3, docs_per_partition=20)
    splits = {text: split for text, (split, _) in merging.docs().items()}
    apart = {
        (one, other): jaccard(one, other) for one, other in text_pairs if splits[one] != splits[other] and one != other
    }
    texts = [text for family in text_pairs for text in family]
    reported = {}
    for pair in merging.lines("near_duplicates.jsonl"):
        assert all(text["doc"] == f"{text['line']}.txt" for text in pair["texts"])
        one, other = sorted(text["line"] - 1 for text in pair["texts"])
        assert {texts[text["line"] - 1]: text["split"] for text in pair["texts"]}.items() <= splits.items()
        reported[texts[one], texts[other]] = pair["similarity"]
    assert set(reported) <= set(apart), "what is reported is a family in two splits"
    assert {pair for pair, similarity in apart.items() if similarity > 0.9} <= set(reported)
    assert not {pair for pair, similarity in apart.items() if similarity < 0.65} & set(reported)
    assert all(abs(similarity - apart[pair]) < 0.2 for pair, similarity in reported.items())
    assert list(reported.values()) == sorted(reported.values(), reverse=True)
    assert sum(of.total() for of in ledger.near_duplicates.values()) == len(reported) > 10
    ledger = merging.run("kept", dev_ratio=0.2, test_ratio=0.3, near_duplicates="group")
    kept = {text: split for text, (split, _) in merging.docs("kept").items()}
    near_pairs = [(one, other) for one, other in text_pairs if jaccard(one, other) > 0.9]
    assert all(kept[one] == kept[other] for one, other in near_pairs)
    assert all(kept[one] in (splits[one], splits[other]) for one, other in text_pairs), "where the hash of one puts it"
    assert ledger.near_duplicates == {}
    assert merging.files("kept")["near_duplicates.jsonl"] == b""
    assert {*kept.values()} == {"train", "dev", "test"}


def test_many_equal_texts_are_one_group_however_their_letters_are_written(merging):
    """Decomposed, compatible, in capitals. Comparing all pairs would be quadratic."""
    wording = "Zoë Müller rührt 5 µl Weißwein in den Kaffee, öffnet die Tür und grüßt 20 müde Ärzte auf der Straße"
    written = [unicodedata.normalize(form, wording) for form in ("NFD", "NFKC")]
    add(merging, [*written, wording.upper().replace("ß", "SS")])
    merging.add("b", ["A"], [{"text": f"{wording} {'!' * number}", "spans": []} for number in range(15)], split="test")
    merging.run("apart", dev_ratio=0, test_ratio=0)
    assert {pair["similarity"] for pair in merging.lines("near_duplicates.jsonl", "apart")} == {1.0}
    merging.run(dev_ratio=0, test_ratio=0, near_duplicates="group")
    assert {split for split, _ in merging.docs().values()} == {"test"}
