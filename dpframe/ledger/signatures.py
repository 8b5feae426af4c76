"""Signatures of approvals, with a key from the environment.

With HMAC everyone who can verify can also sign. With Ed25519 (RFC 8032) reviewers keep the
private key, and jobs have the public one, with which they can only verify.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from dpframe.errors import LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

KEY_VARIABLE = "DPFRAME_APPROVAL_KEY"
"""The environment variable with the key, if any."""

_FORMAT = "dpframe approval 2"
_SHORTEST = 16
_FORMS = (
    f"set {KEY_VARIABLE} to hmac:SECRET with at least {_SHORTEST} bytes, or to ed25519:PRIVATE or "
    "ed25519-public:PUBLIC with 64 hexadecimal digits",
    "make a pair of keys: `dpframe approve --new-key`",
)

Scheme = Literal["hmac", "ed25519", "ed25519-public"]


@dataclass(frozen=True, slots=True)
class ApprovalKey:
    """A key that signs or verifies approvals.

    Parameters
    ----------
    scheme
        ``"hmac"``, ``"ed25519"`` for a private key or ``"ed25519-public"`` for one that verifies.
    secret
        The key.
    """

    scheme: Scheme
    secret: bytes = field(repr=False)

    @classmethod
    def from_environment(cls) -> ApprovalKey | None:
        """The key in the environment, None if none exists.

        Raises
        ------
        LedgerError
            When what is there is no key.
        """
        text = os.environ.get(KEY_VARIABLE)
        return None if text is None else cls.parse(text)  # one that is empty was meant to be one

    @classmethod
    def parse(cls, text: str) -> ApprovalKey:
        """A key from its text, which names its scheme: a public key is no secret for HMAC.

        Raises
        ------
        LedgerError
            When the text is not a valid key.
        """
        scheme, _, value = text.strip().partition(":")
        if scheme == "hmac" and len(value.strip().encode("utf-8", "surrogateescape")) >= _SHORTEST:
            return cls("hmac", value.encode("utf-8", "surrogateescape"))
        if scheme in ("ed25519", "ed25519-public"):
            try:
                secret = bytes.fromhex(value)
            except ValueError:
                secret = b""
            if len(secret) == 32:
                return cls("ed25519" if scheme == "ed25519" else "ed25519-public", secret)
        raise LedgerError(
            f"the text in {KEY_VARIABLE} is not a key for approvals",
            where=KEY_VARIABLE,
            remedy=_FORMS,
        )

    def sign(self, *fields: Any) -> str:
        """The signature of an approval's fields, with the name of its scheme.

        Raises
        ------
        LedgerError
            When the key can only verify.
        """
        text = _message(fields)
        match self.scheme:
            case "hmac":
                return f"hmac-sha256:{hmac.digest(self.secret, text, hashlib.sha256).hex()}"
            case "ed25519":
                return f"ed25519:{_private(self.secret).sign(text).hex()}"
            case "ed25519-public":
                raise LedgerError(
                    "a public key can verify approvals, but not sign them",
                    where=KEY_VARIABLE,
                    remedy="sign with the private key, ed25519:PRIVATE",
                )

    def verifies(self, signature: str | None, *fields: Any) -> bool:
        """Whether an approval was signed with this key, or with the private key of it."""
        if signature is None:
            return False
        text = _message(fields)
        if self.scheme == "hmac":
            right = self.sign(*fields)
            return hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogatepass"))
        scheme, _, value = signature.partition(":")
        try:
            made = bytes.fromhex(value)
        except ValueError:
            return False
        return scheme == "ed25519" and _is_signed(self._public(), made, text)

    def _public(self) -> ed25519.Ed25519PublicKey:
        if self.scheme == "ed25519":
            return _private(self.secret).public_key()
        key: ed25519.Ed25519PublicKey
        key = _library().Ed25519PublicKey.from_public_bytes(self.secret)
        return key


def new_pair() -> tuple[str, str]:
    """A new private key and its public key, as the environment takes them.

    Raises
    ------
    LedgerError
        When the package that makes them is not installed.
    """
    made = _library().Ed25519PrivateKey.generate()
    private, public = made.private_bytes_raw(), made.public_key().public_bytes_raw()
    return f"ed25519:{private.hex()}", f"ed25519-public:{public.hex()}"


def _message(fields: Sequence[Any]) -> bytes:
    """One text for each list of fields: JSON whose objects are sorted, beyond ASCII escaped."""
    return json.dumps([_FORMAT, *fields], sort_keys=True).encode("ascii")


def _private(secret: bytes) -> ed25519.Ed25519PrivateKey:
    key: ed25519.Ed25519PrivateKey = _library().Ed25519PrivateKey.from_private_bytes(secret)
    return key


def _is_signed(key: ed25519.Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _library() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise LedgerError(
            "signatures with Ed25519 need the package cryptography",
            where=KEY_VARIABLE,
            remedy=('pip install "dpframe[sign]"', "use hmac:SECRET"),
        ) from None
    return ed25519
