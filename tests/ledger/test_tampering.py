"""Every edit, deletion, addition and reordering is found, and nothing is spent after it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.record import COLUMNS, Record, Seal
from tests.ledger.ledgers import TENTH, UNIT, filled, opened, sql, verify

RECORDS = 9
KEY = "a key of the data owner"


@pytest.fixture(params=[None, KEY], ids=["unkeyed", "keyed"])
def key(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, dict[str, bytes]]:
    """Contents of files, which are nowhere: two of them at a time would be copies."""
    made: dict[str | None, dict[str, bytes]] = {}
    for key in (None, KEY):
        path = tmp_path_factory.mktemp("template") / "budget.db"
        filled(path, key)
        verify(path, key)
        made[key] = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        for file in path.parent.iterdir():
            file.unlink()
    return made


def put(path: Path, files: dict[str, bytes]) -> Path:
    """Those contents at a place, as if nobody had used them."""
    for name, content in files.items():
        path.with_name(name).write_bytes(content)
    return path


@pytest.fixture
def files(key: str | None, templates: dict[str | None, dict[str, bytes]]) -> dict[str, bytes]:
    return templates[key]


@pytest.fixture
def path(tmp_path: Path, files: dict[str, bytes]) -> Path:
    return put(tmp_path / "budget.db", files)


def require_refused(path: Path, key: str | None, words: str = "does not verify") -> None:
    """By `verify` and by every use that a new process could make of the file."""
    with pytest.raises(dp.LedgerError, match=words):
        verify(path, key)
    with pytest.raises(dp.LedgerError, match=words):
        opened(path, key=key)
    with pytest.raises(dp.LedgerError, match=words):
        opened(path, name="fresh", key=key)


def other_values(value: Any) -> list[Any]:
    match value:
        case None:
            return ["x", 0, "", b""]
        case int():
            return [value + 100, None, str(value) + "x", -1, float("inf"), 0.5, b"x"]
        case _:
            return [
                value + " ",
                "",
                float("inf"),
                value.upper() + "0",
                value.encode(),
                7,
                value[:-1],
            ]


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edit_of_any_value_is_found(
    path: Path, key: str | None, column: str, files: dict[str, bytes]
) -> None:
    before, found = sql(path, "SELECT * FROM records"), 0
    for seq in range(1, RECORDS + 1):
        ((value,),) = sql(path, f"SELECT {column} FROM records WHERE seq = ?", seq)
        for other in other_values(value):
            put(path, files)
            try:
                sql(path, f"UPDATE records SET {column} = ? WHERE seq = ?", other, seq)
            except sqlite3.Error:  # the table itself does not take it
                continue
            if sql(path, "SELECT * FROM records") != before:
                require_refused(path, key, "record|its head|UTF-8|ends at")
                found += 1
    assert found >= 2 * RECORDS


@pytest.mark.parametrize("column", ["seq", "hash", "seal"])
def test_an_edit_of_the_head_is_found(path: Path, key: str | None, column: str) -> None:
    ((value,),) = sql(path, f"SELECT {column} FROM head")
    ledger = opened(path, key=key)
    for other in other_values(value):
        if other is None:  # the table does not take it
            continue
        sql(path, f"UPDATE head SET {column} = ?", other)
        require_refused(path, key)
        with pytest.raises(dp.LedgerError, match="does not verify"):
            ledger.charge(TENTH, "f")


@pytest.mark.parametrize("column", ["time", "name", "hash", "previous", "fingerprint"])
def test_text_that_is_no_text_is_found(path: Path, key: str | None, column: str) -> None:
    sql(path, f"UPDATE records SET {column} = CAST(x'ff' AS TEXT) WHERE seq = 3")
    require_refused(path, key, "UTF-8|does not verify")


@pytest.mark.parametrize("beside", [True, False], ids=["head file", "no head file"])
@pytest.mark.parametrize("seq", range(1, RECORDS + 1))
def test_a_deletion_is_found(path: Path, key: str | None, seq: int, beside: bool) -> None:
    sql(path, "DELETE FROM records WHERE seq = ?", seq)
    if not beside:
        Path(f"{path}.head").unlink()
    require_refused(path, key)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM records",
        "DELETE FROM head",
        "DROP TABLE head",
        "DROP TABLE records",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "INSERT INTO records SELECT 10, time, name, act, refers, fingerprint, unit, measure, main, "
        "slack, who, why, previous, hash FROM records WHERE seq = 9",
        "UPDATE records SET seq = CASE seq WHEN 3 THEN 4 ELSE 3 END WHERE seq = 999",
        "PRAGMA application_id = 5",
    ],
)
def test_changes_of_tables_are_found(path: Path, key: str | None, statement: str) -> None:
    before = sql(path, "SELECT * FROM records")
    sql(path, statement)
    if "999" in statement:  # swap two records
        sql(path, "UPDATE records SET seq = 100 WHERE seq = 3")
        sql(path, "UPDATE records SET seq = 3 WHERE seq = 4")
        sql(path, "UPDATE records SET seq = 4 WHERE seq = 100")
        assert sql(path, "SELECT * FROM records") != before
    require_refused(path, key, "does not verify|not a ledger")


def test_an_empty_database_in_its_place_is_found(path: Path, key: str | None) -> None:
    path.write_bytes(b"")
    require_refused(path, key, "it ends at record 0, and once had 9")


def test_an_older_copy_in_its_place_is_found(path: Path, key: str | None, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "old.db")
    opened(path, key=key).charge(TENTH, "new")
    shutil.copy(tmp_path / "old.db", path)
    require_refused(path, key, "ends at record 9, and once had 10")


def test_a_deleted_ledger_is_not_made_anew(path: Path, key: str | None) -> None:
    path.unlink()
    with pytest.raises(dp.LedgerError, match="ends at record 0, and once had 9"):
        opened(path, key=key)


def test_a_ledger_without_its_head_file_is_refused(path: Path, key: str | None) -> None:
    """A copy has none."""
    ledger, beside = opened(path, key=key), Path(f"{path}.head")
    text = beside.read_bytes()
    for other in (None, b""):
        beside.unlink(missing_ok=True)
        if other is not None:
            beside.write_bytes(other)
        require_refused(path, key, "has 9 records, but its head file 'budget.db.head' is missing")
        for use in (lambda: ledger.charge(TENTH, "f"), lambda: ledger.spent):
            with pytest.raises(dp.LedgerError, match="is missing"):
                use()
    beside.write_bytes(text)
    number = ledger.charge(TENTH, "f")
    assert beside.read_bytes().startswith(f"{number:020d} ".encode())
    beside.write_bytes(text)  # behind, as after a crash
    verify(path, key)
    beside.write_bytes(text[:-9] + b"0" * 8 + b"\n")
    require_refused(path, key, "its head file 'budget.db.head' was changed")


# -- while it is in use -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET main = '0' WHERE seq = 3",
        "DELETE FROM records WHERE seq = 9",
        "UPDATE head SET seq = 8",
        "UPDATE records SET fingerprint = '' WHERE seq = 3",
    ],
)
def test_a_change_while_it_is_in_use_is_found(path: Path, key: str | None, statement: str) -> None:
    ledger = opened(path, key=key)
    ledger.charge(TENTH, "f")
    count = len(sql(path, "SELECT * FROM records"))
    sql(path, statement)
    for _ in range(2):  # and it stays so
        with pytest.raises(dp.LedgerError, match="does not verify"):
            ledger.charge(TENTH, "f")
        with pytest.raises(dp.LedgerError, match="does not verify"):
            _ = ledger.spent
    assert len(sql(path, "SELECT * FROM records")) == count - statement.startswith("DELETE")


def test_an_old_record_changed_in_a_long_chain_is_found_in_time(
    path: Path, key: str | None
) -> None:
    """A long chain is verified as a whole when its head has not moved, or it has doubled."""
    ledger, other = opened(path, key=key), opened(path, key=key)
    for _ in range(300):
        ledger.charge(dp.PureDP("1e-9"), "f")
    assert other.spent == ledger.spent
    sql(path, "UPDATE records SET main = '0' WHERE seq = 3")
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        _ = ledger.spent  # the head has not moved
    with pytest.raises(dp.LedgerError, match="record 3 was changed"):
        other.verify()


# -- with and without the key -----------------------------------------------------------------


def rewritten(path: Path | str, seal: Seal) -> None:
    """What somebody who can write the ledger can do: smaller costs, everything hashed again."""
    previous, seq = "", 0
    for row in sql(path, "SELECT * FROM records ORDER BY seq"):
        record = Record(*row)
        values = list(row[:-1])
        if record.act == "charged":
            values[COLUMNS.index("main")] = "1/1000"
        values[-1] = previous
        seq, previous = record.seq, seal.record(values)
        sets = ", ".join(f"{c} = ?" for c in COLUMNS)
        sql(path, f"UPDATE records SET {sets} WHERE seq = ?", *values, previous, seq)
    head = seal.head(seq, previous)
    sql(path, "UPDATE head SET hash = ?, seal = ?", head.hash, head.seal)
    if isinstance(path, Path):
        ((identity,),) = sql(path, "SELECT fingerprint FROM records WHERE act = 'identified'")
        beside = Path(f"{path}.head")
        beside.unlink(missing_ok=True)
        witness = HeadFile(beside, seal, alone=True)
        with witness.open() as file:
            witness.write(file, Seen(seq, previous, identity))


def test_with_a_key_a_rewritten_chain_is_found_too(path: Path, key: str | None) -> None:
    rewritten(path, Seal(None))
    if key is None:
        assert opened(path).spent == dp.PureDP("0.003")  # only a key prevents that
        return
    require_refused(path, key, "another key")
    rewritten(path, Seal("guessed"))
    require_refused(path, key, "another key")


def test_a_key_cannot_be_left_out_or_added(path: Path, key: str | None) -> None:
    for wrong in {None, KEY, "another"} - {key}:
        words = "sealed with a key" if wrong is None else "sealed with another key"
        require_refused(path, wrong, words)
        Path(f"{path}.head").unlink(missing_ok=True)
        require_refused(path, wrong, words)


def test_a_record_that_makes_no_sense_is_refused_whoever_sealed_it(
    path: Path, files: dict[str, bytes]
) -> None:
    for column, value in [
        ("measure", "renyi"),
        ("main", "-1"),
        ("main", "1/0"),
        ("main", "1000"),
        ("act", "forgiven"),
        ("name", "nobody"),
        ("time", "yesterday"),
        ("measure", "zCDP"),
    ]:
        put(path, files)
        Path(f"{path}.head").unlink()
        sql(path, f"UPDATE records SET {column} = ? WHERE seq = 4", value)
        previous, seal = "", Seal(None)
        for row in sql(path, "SELECT * FROM records ORDER BY seq"):
            digest = seal.record([*row[:-2], previous])
            sql(
                path,
                "UPDATE records SET previous=?, hash=? WHERE seq=?",
                previous,
                digest,
                row[0],
            )
            previous = digest
        head = seal.head(RECORDS, previous)
        sql(path, "UPDATE head SET hash = ?, seal = ?", head.hash, head.seal)
        with pytest.raises(dp.LedgerError, match="record 4 "):
            verify(path)


def test_the_key_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keyed.db"
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", KEY)
    dp.Session(epsilon=1, ledger=path)
    monkeypatch.delenv("DPFRAME_LEDGER_KEY")
    with pytest.raises(dp.LedgerError, match="DPFRAME_LEDGER_KEY is not set"):
        dp.Session(epsilon=1, ledger=path)
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", "a wrong key of that length")
    with pytest.raises(dp.LedgerError, match="another key than the one in DPFRAME_LEDGER_KEY"):
        dp.Session(epsilon=1, ledger=path)
    verify(path, KEY)
    assert opened(path, key=KEY).charge(TENTH, "f", UNIT)


@pytest.mark.parametrize("text", ["", " ", "\t\n", "brief", "fifteen letters", " " * 40 + "x"])
def test_what_is_no_key_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "budget.db"
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", text)
    with pytest.raises(dp.LedgerError, match=r"too short|empty") as refused:
        dp.Session(epsilon=1, ledger=path)
    assert "16 bytes" in str(refused.value)
    assert not text.strip() or text not in str(refused.value)
    assert not path.exists()
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", "sixteen letters!")
    dp.Session(epsilon=1, ledger=path)
    verify(path, "sixteen letters!")
