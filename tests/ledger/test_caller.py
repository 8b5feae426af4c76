"""Who is recorded as the one who was charged."""

from __future__ import annotations

import os
import pwd
import sys
from types import ModuleType

import pytest

from dpframe.ledger import account as caller
from dpframe.ledger.account import Caller, caller_of, running, this_caller


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(caller.JOB_VARIABLE, raising=False)
    monkeypatch.delenv(caller.RUN_VARIABLE, raising=False)


def with_main(monkeypatch: pytest.MonkeyPatch, file: object) -> None:
    main = ModuleType("__main__")
    if file is not None:
        vars(main)["__file__"] = file
    monkeypatch.setitem(sys.modules, "__main__", main)


@pytest.mark.parametrize(
    ("file", "job"),
    [
        ("/srv/nightly.py", "/srv/nightly.py"),
        ("nightly.py", os.path.abspath("nightly.py")),
        (None, None),  # a notebook, or `python -c`
        (7, None),
    ],
)
def test_the_job_is_the_script(
    file: object, job: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_main(monkeypatch, file)
    assert this_caller().job == job


def test_a_job_that_was_named_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with_main(monkeypatch, "/srv/script.py")
    monkeypatch.setenv(caller.JOB_VARIABLE, "from outside")
    monkeypatch.setenv(caller.RUN_VARIABLE, "7")
    assert (this_caller().job, this_caller().run) == ("from outside", "7")
    with running("job.toml", None):
        assert (this_caller().job, this_caller().run) == ("job.toml", "7")
        with running("inner.toml", "8"):
            assert (this_caller().job, this_caller().run) == ("inner.toml", "8")
        assert this_caller().job == "job.toml"
    assert this_caller().job == "from outside"


def test_an_account_without_a_name_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    free = max(account.pw_uid for account in pwd.getpwall()) + 1
    monkeypatch.setattr(os, "geteuid", lambda: free)
    assert this_caller().user == f"user {free}"


def test_the_account_is_the_one_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may give up its rights while it runs; the environment says nothing."""
    monkeypatch.setenv("USER", "somebody else")
    for account in pwd.getpwall()[:3]:
        monkeypatch.setattr(os, "geteuid", lambda number=account.pw_uid: number)
        assert this_caller().user == pwd.getpwuid(account.pw_uid).pw_name


def test_what_is_recorded_is_read_back() -> None:
    found = Caller("ann", "host", 7, "job\n", None)
    assert caller_of(found.user, found.fields()) == found
    for other in ({}, found.fields() | {"process": True}, found.fields() | {"process": "7"}):
        with pytest.raises((ValueError, TypeError)):
            caller_of("ann", other)
