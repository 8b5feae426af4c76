"""Keys that sign approvals, and what they do not verify."""

from __future__ import annotations

import builtins
import hashlib
import hmac
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import dpframe as dp
from dpframe.ledger.approvals import KEY_VARIABLE, ApprovalKey, new_pair

SECRET = "hmac:a secret of reviewers"
# RFC 8032, section 7.1, test 1; the same in every process, for cases are named after them
PRIVATE = "ed25519:9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "ed25519-public:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
APPROVAL = ("census", "f" * 64, "Ann")
MESSAGE = b'["dpframe approval 2", "census", "%s", "Ann"]' % (b"f" * 64)


def key(text: str) -> ApprovalKey:
    return ApprovalKey.parse(text)


@pytest.mark.parametrize(
    ("signing", "verifying"), [(SECRET, SECRET), (PRIVATE, PRIVATE), (PRIVATE, PUBLIC)]
)
def test_what_was_signed_is_verified_and_nothing_else(signing: str, verifying: str) -> None:
    signature = key(signing).sign(*APPROVAL)
    assert key(verifying).verifies(signature, *APPROVAL)
    for i, other in enumerate(("other", "e" * 64, "Bob")):
        changed = (*APPROVAL[:i], other, *APPROVAL[i + 1 :])
        assert not key(verifying).verifies(signature, *changed)
    assert not key(verifying).verifies(signature, APPROVAL[1], APPROVAL[0], APPROVAL[2])


def test_a_boundary_between_fields_cannot_be_moved() -> None:
    signature = key(SECRET).sign("a", "b", 'c", "d')
    assert not key(SECRET).verifies(signature, "a", 'b", "c', "d")
    assert not key(SECRET).verifies(key(SECRET).sign("ab", "c", "d"), "a", "bc", "d")


@pytest.mark.parametrize("text", [SECRET, PRIVATE, PUBLIC])
@pytest.mark.parametrize(
    "wrong", [None, "", "x", "hmac-sha256:", "ed25519:", "ed25519:zz", "é", "\ud800", ":" * 70]
)
def test_what_is_no_signature_is_not_verified(text: str, wrong: str | None) -> None:
    assert not key(text).verifies(wrong, *APPROVAL)


def test_signatures_of_other_keys_and_schemes_are_not_verified() -> None:
    other_private, other_public = new_pair()
    by_hmac, by_pair = key(SECRET).sign(*APPROVAL), key(PRIVATE).sign(*APPROVAL)
    assert not key("hmac:another secret, as long").verifies(by_hmac, *APPROVAL)
    for other in (other_private, other_public, SECRET):
        assert not key(other).verifies(by_pair, *APPROVAL)
    for other in (PRIVATE, PUBLIC):
        assert not key(other).verifies(by_hmac, *APPROVAL)
        assert not key(other).verifies(by_pair.replace("ed25519", "hmac-sha256"), *APPROVAL)
        assert not key(other).verifies(by_pair[:-2], *APPROVAL)
        assert not key(other).verifies(by_pair + "00", *APPROVAL)


def test_who_has_the_public_key_cannot_sign() -> None:
    with pytest.raises(dp.LedgerError, match="but not sign"):
        key(PUBLIC).sign(*APPROVAL)
    public = PUBLIC.partition(":")[2]
    forged = key("hmac:" + public).sign(*APPROVAL)
    assert not key(PUBLIC).verifies(forged, *APPROVAL)
    for guess in (public, PUBLIC, bytes.fromhex(public)):  # taken for a secret
        secret = guess if isinstance(guess, bytes) else guess.encode()
        forged = f"hmac-sha256:{hmac.digest(secret, MESSAGE, hashlib.sha256).hex()}"
        assert not key(PUBLIC).verifies(forged, *APPROVAL)
    assert key("hmac:" + PUBLIC).verifies(  # the forgery is one where the key is a secret
        f"hmac-sha256:{hmac.digest(PUBLIC.encode(), MESSAGE, hashlib.sha256).hex()}", *APPROVAL
    )


def test_signatures_are_those_of_the_standard() -> None:
    made = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(PRIVATE.partition(":")[2]))
    assert key(PRIVATE).sign(*APPROVAL) == f"ed25519:{made.sign(MESSAGE).hex()}"
    digest = hmac.new(SECRET.removeprefix("hmac:").encode(), MESSAGE, hashlib.sha256).hexdigest()
    assert key(SECRET).sign(*APPROVAL) == f"hmac-sha256:{digest}"


@pytest.mark.parametrize(
    "garbled",
    [
        "",
        "   ",
        "hmac:",
        "hmac:short",
        "hmac:" + "x" * 15,
        "hmac:" + " " * 20 + "x",
        "a long secret without its scheme",
        PUBLIC.partition(":")[2],
        PUBLIC.replace("-public", " public"),
        PUBLIC + "00",
        PRIVATE[:-2],
        "ed25519:" + "zz" * 32,
        "ed25519:" + "é" * 32,
        "ed25519-secret:" + "00" * 32,
        "HMAC:a secret of reviewers",
    ],
)
def test_a_key_that_is_none_is_refused_without_being_shown(
    garbled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, garbled)
    with pytest.raises(dp.LedgerError, match="is not a key for approvals") as refused:
        ApprovalKey.from_environment()
    assert len(garbled.strip()) < 6 or garbled not in str(refused.value)


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert ApprovalKey.from_environment() is None
    monkeypatch.setenv(KEY_VARIABLE, f" {PUBLIC}\n")
    assert ApprovalKey.from_environment() == key(PUBLIC)


@pytest.mark.parametrize("text", [SECRET, PRIVATE, PUBLIC], ids=["secret", "private", "public"])
def test_keys_are_never_shown(text: str) -> None:
    assert text.partition(":")[2] not in repr(key(text)) + str(key(text))


def test_pairs_are_new_each_time() -> None:
    assert len({text for _ in range(8) for text in new_pair()}) == 16


def test_without_cryptography_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for work in (new_pair, lambda: key(PRIVATE).sign(*APPROVAL)):
        with pytest.raises(dp.LedgerError, match="need the package") as refused:
            work()
        assert 'pip install "dpframe[sign]"' in str(refused.value)
    assert key(SECRET).verifies(key(SECRET).sign(*APPROVAL), *APPROVAL)
