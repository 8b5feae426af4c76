"""With ``--log json`` nothing but objects is on the standard error."""

from __future__ import annotations

import json
import sys
import warnings

import pytest

from dpframe.cli.output import Log, log_event, writing


def test_whatever_is_written_to_the_standard_error_is_a_line_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.stderr, warnings.showwarning
    with writing(Log("job.py", "today")):
        log_event("start")
        print("two\nlines", file=sys.stderr)
        sys.stderr.write("half of ")
        sys.stderr.write("one\n\n")
        warnings.warn("careful", UserWarning, stacklevel=1)
        print("no end", end="", file=sys.stderr)
    assert (sys.stderr, warnings.showwarning) == before
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [one["event"] for one in found] == ["start", *["message"] * 3, "warning", "message"]
    assert [one.get("text") for one in found[1:4]] == ["two", "lines", "half of one"]
    assert (found[4]["category"], found[4]["text"]) == ("UserWarning", "careful")
    assert all((one["job"], one["run"]) == ("job.py", "today") for one in found)
