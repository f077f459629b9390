"""Shares of a command's jobs: each job is done once, in any order, by any of them, killed or not; and nothing else."""

import json
import random
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from labelwise.common import shares as module
from labelwise.common.errors import InputError
from labelwise.common.outputs import staged
from labelwise.common.own_files import locked
from labelwise.common.shares import Share, ShareEnded, open_shares, parse_share

JOBS = {"count": 7, "square": 11}


class Killed(BaseException):
    """As if the process had been killed."""


def work(out: Path, share: str, did: list, *, fail_at: int = -1, settings: str = "a") -> list[int]:
    """Two phases: the second does with each number what the first made of it."""

    def do(phase, found):
        def run(numbers):
            for number in numbers:
                if len(did) == fail_at:
                    raise Killed
                did.append((phase, number))
                yield number + 100 if phase == "count" else found[number % len(found)] ** 2

        return run

    whole = nullcontext() if share else locked(out)
    with whole, open_shares(out, share, lambda: {"settings": settings}) as shares:
        counts = list(shares.results("count", JOBS["count"], do("count", []), json.loads))
        return list(shares.results("square", JOBS["square"], do("square", counts), json.loads, last=True))


ALONE = [(100 + number % 7) ** 2 for number in range(11)]
EACH = sorted([("count", number) for number in range(7)] + [("square", number) for number in range(11)])


@pytest.mark.parametrize("of", [1, 2, 3, 9, 20])
def test_each_job_is_done_once_and_a_whole_run_finds_all_done(tmp_path, of):
    out, did = tmp_path / "out", []
    for _ in JOBS:
        for number in random.Random(of).sample(range(1, of + 1), of):
            with pytest.raises(ShareEnded):
                work(out, f"{number}/{of}", did)
    assert sorted(did) == EACH
    assert work(out, "", did) == ALONE
    assert sorted(did) == EACH
    assert not list(tmp_path.iterdir())


def test_a_share_that_was_killed_goes_on_where_it_was(tmp_path):
    out, did = tmp_path / "out", []
    with pytest.raises(Killed):
        work(out, "1/2", did, fail_at=2)
    with (tmp_path / ".out.labelwise.shares/count-1.jsonl").open("ab") as lines:
        lines.write(b"10")  # a line that was cut off
    for share in ("1/2", "2/2", "1/2", "2/2"):
        with pytest.raises(ShareEnded):
            work(out, share, did)
    assert sorted(did) == EACH
    assert work(out, "", did) == ALONE


def test_what_is_said(tmp_path):
    def said(share):
        with pytest.raises(ShareEnded) as ended:
            work(tmp_path / "out", share, [])
        return str(ended.value)

    assert said("2/3") == "count: share 2/3 did 2 jobs; 5 of 7 are missing, of shares 1, 3"
    assert said("2/3") == "count: share 2/3 did 0 jobs; 5 of 7 are missing, of shares 1, 3"
    assert said("3/3") == "count: share 3/3 did 3 jobs; 2 of 7 are missing, of share 1"
    assert said("1/3").endswith("all 7 are done: run the shares once more, for what comes next")
    assert said("1/3") == "square: share 1/3 did 3 jobs; 8 of 11 are missing, of shares 2, 3"
    said("2/3")
    assert said("3/3") == "square: share 3/3 did 4 jobs; all 11 are done: run this without --share to finish"


@pytest.mark.parametrize("share", ["0/50", "51/50", "3", "a/b", "3/", "/3", "1/0", "-1/3", "1/2/3"])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(InputError, match=f"--share {share}: give a number from 1 on"):
        parse_share(share)


@pytest.mark.parametrize(
    ("share", "settings", "named"), [("1/3", "a", "shares (2, not 3)"), ("2/2", "b", "settings (")]
)
def test_shares_have_the_same_plan(tmp_path, share, settings, named):
    with pytest.raises(ShareEnded):
        work(tmp_path / "out", "1/2", [])
    with pytest.raises(InputError) as refused:
        work(tmp_path / "out", share, [], settings=settings)
    assert f"was begun with other {named}" in str(refused.value)
    assert str(tmp_path / ".out.labelwise.shares") in str(refused.value)


def test_shares_have_the_same_code(tmp_path, monkeypatch):
    with pytest.raises(ShareEnded):
        work(tmp_path / "out", "1/2", [])
    other = module.own_facts()._replace(code="another")
    monkeypatch.setattr(module, "own_facts", lambda: other)
    with pytest.raises(InputError, match="was begun with other code"):
        work(tmp_path / "out", "2/2", [])


def test_a_whole_run_with_other_settings_does_all_itself(tmp_path):
    for share in ("1/2", "2/2", "1/2", "2/2"):
        with pytest.raises(ShareEnded):
            work(tmp_path / "out", share, [])
    did: list = []
    assert work(tmp_path / "out", "", did, settings="b") == ALONE
    assert sorted(did) == EACH


OTHER = """
import sys, time
from pathlib import Path
from labelwise.common.shares import open_shares
with open_shares(Path(sys.argv[1]), sys.argv[2], dict):
    print("in", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def beside(tmp_path):
    """Another process, which does the first of two shares."""
    other = subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path / "out"), "1/2"], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"in\n"
    yield other
    other.kill()
    other.wait()


def test_others_may_run_beside_a_share_but_not_the_same_nor_a_whole_run(tmp_path, beside):
    with open_shares(tmp_path / "out", "2/2", dict):
        pass
    with (
        pytest.raises(InputError, match=rf"process {beside.pid} is writing share-1 there"),
        open_shares(tmp_path / "out", "1/2", dict),
    ):
        pass
    for _ in range(2):  # another share has ended
        with pytest.raises(InputError, match="is writing out there"), staged(tmp_path / "out"):
            pass
    beside.kill()
    beside.wait()
    with open_shares(tmp_path / "out", "1/2", dict), pytest.raises(InputError, match="--share 3/2"):
        parse_share("3/2")
    with staged(tmp_path / "out") as path:
        path.write_text("whole")


def test_no_share_begins_beside_a_whole_run(tmp_path):
    code = OTHER.replace("common.shares import open_shares", "common.outputs import staged")
    code = code.replace("open_shares(Path(sys.argv[1]), sys.argv[2], dict)", "staged(Path(sys.argv[1]))")
    whole = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert whole.stdout.readline() == b"in\n"
    with (
        pytest.raises(InputError, match=rf"process {whole.pid} is writing out there"),
        open_shares(tmp_path / "out", "1/2", dict),
    ):
        pass
    whole.kill()
    whole.wait()


def test_parts_are_whole_and_follow_each_other():
    for jobs in (0, 1, 7, 50, 1234):
        parts = [Share(number, 50).part(jobs) for number in range(1, 51)]
        assert [number for part in parts for number in part] == list(range(jobs))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
