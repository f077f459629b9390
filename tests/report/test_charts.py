"""Charts: where numbers come to lie."""

import math

import pytest

from labelwise.report.charts import draw_lines, nice_step, short_number


@pytest.mark.parametrize(
    ("highest", "step"), [(1, 0.2), (0.3, 0.1), (4, 1), (5, 1), (6, 2), (99, 20), (101, 50), (73_333, 20_000), (0, 1)]
)
def test_axes_have_round_steps_and_at_most_five(highest, step):
    assert nice_step(highest, 5) == pytest.approx(step)


def test_a_step_for_nothing_known_is_one():
    assert nice_step(math.nan, 5) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.2, "0.2"), (0.1 + 0.2, "0.3"), (999, "999"), (1500, "1.5k"), (2e6, "2M"), (3e9, "3G")],
)
def test_numbers_on_axes_are_short(value, text):
    assert short_number(value) == text


def test_an_unknown_number_is_a_dash():
    assert short_number(math.nan) == "–"


def test_points_lie_between_the_axes():
    # The frame: x from 46 to 348, y from 164 (0) up to 10 (the end of the axis).
    chart = draw_lines([0, 50, 100], {"F": [0.0, 0.5, 1.0]}, highest=1.0)
    assert chart.lines[0].path == "M46 164L197 87L348 10"
    assert chart.lines[0].end == (348, 10)
    assert [tick.text for tick in chart.y_ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [tick.at for tick in chart.x_ticks] == pytest.approx([46, 106.4, 166.8, 227.2, 287.6, 348])


def test_the_axis_ends_at_the_first_step_that_holds_the_highest_value():
    assert [tick.text for tick in draw_lines([1, 2], {"MB": [10, 298]}).y_ticks] == ["0", "100", "200", "300"]


def test_nan_breaks_a_line_and_counts_for_nothing():
    line = draw_lines([0, 1, 2, 3], {"W": [1.0, math.nan, 3.0, math.nan]}).lines[0]
    assert line.path.count("M") == 2
    assert "L" not in line.path
    assert "nan" not in line.path
    assert (line.last, line.highest) == (3.0, 3.0)


def test_a_line_of_nothing_but_nan_has_no_points():
    line = draw_lines([0, 1], {"W": [math.nan, math.nan]}).lines[0]
    assert line.path == ""
    assert line.end is None
    assert math.isnan(line.last)
