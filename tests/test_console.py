"""What the command lines show."""

import io
import time

import pytest

from scripts.console import progress_bytes


class Terminal(io.StringIO):
    def __init__(self, is_one: bool):
        super().__init__()
        self.is_one = is_one

    def isatty(self) -> bool:
        return self.is_one


@pytest.mark.parametrize("is_one", [True, False])
def test_bars_show_rows_speed_and_time_left_on_terminals_alone(monkeypatch, is_one):
    terminal = Terminal(is_one)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bytes("read", 100_000_000) as advance:
        for _ in range(3):
            time.sleep(0.11)
            advance(25_000_000, 1000)
    shown = terminal.getvalue()
    if is_one:
        assert "read:  75%" in shown
        assert "MB/s" in shown
        assert "3,000 rows" in shown
        assert "<00:0" in shown, "time left"
    else:
        assert shown == ""
