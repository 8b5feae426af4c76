"""Approvals of plans: who approved which fingerprint, for which parameters, and who signed it."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dpframe.core import windows
from dpframe.core.budget import Budget
from dpframe.core.parameters import (
    NAME,
    Held,
    NotAValue,
    Parameter,
    ParameterType,
    instant,
    read_type,
)
from dpframe.core.windows import Every
from dpframe.errors import LedgerError, PlanMismatch
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.record import MEASURES, Record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

# What parameters may be in runs that an approval covers: any value, a range, or some values.

ANY = "any"
_TO = ".."


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a parameter may have."""

    type: str  # The type of the parameter, in words
    # ``any``, or the first and the last value, as ``2027-01-01..2027-12-31`` (either may be left
    # out), or a JSON list of values.
    words: str

    def __post_init__(self) -> None:
        if _in_one_form(self.words, read_type(self.type)) != self.words:
            raise NotAValue("the values are not written in the form of their type")

    def covers(self, parameter: Parameter) -> bool:
        """Whether the parameter is of the type, and its value one of these."""
        if parameter.type != self.type:
            return False
        if self.words == ANY:
            return True
        kind = read_type(self.type)
        if not _is_between(self.words, kind):
            return parameter.value in json.loads(self.words)
        low, high = _ends(self.words, kind)
        value: Any = _comparable(parameter.typed_value)
        least = low is None or _comparable(low) <= value
        return least and (high is None or value <= _comparable(high))

    def example(self) -> Held | None:
        """One of the values; None where it may be any."""
        if self.words == ANY:
            return None
        kind = read_type(self.type)
        if _is_between(self.words, kind):
            low, high = _ends(self.words, kind)
            return high if low is None else low
        return kind.read(json.loads(self.words)[0])


Allowed: TypeAlias = "tuple[tuple[str, Range], ...]"
"""What parameters may be, by name, in the order of names."""


def read_range(text: str, kind: ParameterType) -> Range | None:
    """The range of a text with more than one value: ``any``, ``LOW..HIGH``, or several values as
    JSON or with commas between them. Raises `NotAValue` when it holds what is no value of the type.
    """
    bare = text.strip()
    several = bare.startswith("[[") if kind.many else bare.startswith("[") or "," in bare
    if bare != ANY and not _is_between(bare, kind) and not several:
        return None
    return Range(kind.words(), _in_one_form(bare, kind))


def allowed_fields(allowed: Allowed) -> dict[str, dict[str, str]]:
    """As records keep it."""
    return {name: {"type": found.type, "values": found.words} for name, found in allowed}


def read_allowed(found: object) -> Allowed:
    """What `allowed_fields` made. Raises `ValueError, TypeError` when it is in another form."""
    if not isinstance(found, dict) or not found:
        raise TypeError
    result = []
    for name in sorted(found):
        one = found[name]
        if not isinstance(one, dict) or one.keys() != {"type", "values"}:
            raise ValueError
        if not all(isinstance(part, str) for part in one.values()) or not NAME.fullmatch(name):
            raise TypeError
        result.append((name, Range(one["type"], one["values"])))
    return tuple(result)


def covers_all(allowed: Allowed, parameters: Iterable[Parameter]) -> bool:
    """Whether each named parameter is given, with an allowed value."""
    given: Mapping[str, Parameter] = {parameter.name: parameter for parameter in parameters}
    return all(name in given and found.covers(given[name]) for name, found in allowed)


def _is_between(text: str, kind: ParameterType) -> bool:
    return kind.is_ordered and _TO in text


def _ends(text: str, kind: ParameterType) -> tuple[Held | None, Held | None]:
    low, _, high = text.partition(_TO)
    first, last = (kind.read(end) if end.strip() else None for end in (low, high))
    if first is None and last is None:
        raise NotAValue(f'a range has at least one end: write for example LOW..HIGH, or "{ANY}"')
    if first is not None and last is not None and _comparable(first) > _comparable(last):
        raise NotAValue("the range ends before it begins")
    return first, last


def _comparable(held: Held) -> Any:
    return held if isinstance(held, tuple) else instant(held)


def _in_one_form(text: str, kind: ParameterType) -> str:
    if text == ANY:
        return text
    if _is_between(text, kind):
        ends = ("" if end is None else kind.text(end) for end in _ends(text, kind))
        return _TO.join(ends)
    values = {kind.text(kind.read(part)) for part in _parts(text, kind)}
    if not values:
        raise NotAValue("at least one value is needed")
    return json.dumps(sorted(values), ensure_ascii=False)


def _parts(text: str, kind: ParameterType) -> list[str]:
    """Several values in one text, each as text."""
    if not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    try:
        fields = json.loads(text)
    except (RecursionError, ValueError):
        raise NotAValue('several values are written as ["a", "b"], or with commas') from None
    return [_part(item, kind) for item in fields]


def _part(item: object, kind: ParameterType) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if kind.many and isinstance(item, list):
        return json.dumps(item)
    if isinstance(item, str | int | float):
        return str(item)
    raise NotAValue("a list holds single values")


# Signatures of approvals, with a key from the environment.
#
# With HMAC everyone who can verify can also sign. With Ed25519 (RFC 8032) reviewers keep the
# private key, and jobs have the public one, with which they can only verify.

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
    """A key that signs or verifies approvals."""

    # ``"hmac"``, ``"ed25519"`` for a private key or ``"ed25519-public"`` for one that verifies.
    scheme: Scheme
    secret: bytes = field(repr=False)  # The key

    @classmethod
    def from_environment(cls) -> ApprovalKey | None:
        """The key in the environment, None if none exists. Raises `LedgerError` when what is there
        is no key.
        """
        text = os.environ.get(KEY_VARIABLE)
        return None if text is None else cls.parse(text)  # one that is empty was meant to be one

    @classmethod
    def parse(cls, text: str) -> ApprovalKey:
        """A key from its text, which names its scheme: a public key is no secret for HMAC. Raises
        `LedgerError` when the text is not a valid key.
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

    def sign(self, *fields: object) -> str:
        """The signature of an approval's fields, with the name of its scheme. Raises `LedgerError`
        when the key can only verify.
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

    def verifies(self, signature: str | None, *fields: object) -> bool:
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
    """A new private key and its public key, as the environment takes them. Raises `LedgerError`
    when the package that makes them is not installed.
    """
    made = _library().Ed25519PrivateKey.generate()
    private, public = made.private_bytes_raw(), made.public_key().public_bytes_raw()
    return f"ed25519:{private.hex()}", f"ed25519-public:{public.hex()}"


def _message(fields: Sequence[object]) -> bytes:
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


# What an approval is for: one budget of one ledger, and its amount.


@dataclass(frozen=True, slots=True)
class StatedBudget:
    """The budget that a plan is to be charged to, as a reviewer reads it."""

    name: str | None  # The identity of the budget in the ledger; None for a budget in memory
    ledger: str | None  # The identity of its ledger; None for a budget in memory
    whole: Budget  # All that may be spent, as it was given, grants included
    counted: str  # The measure in which charges are added up
    # The windows of time that each have this budget; None for one budget for all time.
    per: Every | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The amount that an approval is for."""

    whole: Budget  # All that may be spent, as sessions give it
    counted: str  # The measure in which charges are added up

    @classmethod
    def of(cls, account: Account) -> Bound:
        """The current state of a budget."""
        return cls(account.within or account.budget, account.budget.measure)

    @classmethod
    def read(cls, found: object) -> Bound:
        """The amount that `fields` made.

        Raises
        ------
        KeyError, TypeError, ValueError, ArithmeticError
            When it makes no sense.
        """
        if not isinstance(found, Mapping) or found.keys() != {
            "measure",
            "main",
            "slack",
            "counted",
        }:
            raise ValueError
        if not all(isinstance(value, str) for value in found.values()):
            raise TypeError
        measure = MEASURES[found["measure"]]
        whole = measure.of(Fraction(found["main"]), Fraction(found["slack"]))
        return cls(whole, MEASURES[found["counted"]].measure)

    def fields(self) -> dict[str, str]:
        """As JSON; of one amount there is one form."""
        return {
            "measure": self.whole.measure,
            "main": str(self.whole.main),
            "slack": str(self.whole.slack),
            "counted": self.counted,
        }

    def words(self) -> str:
        """In words."""
        through = "" if self.counted == self.whole.measure else f" through {self.counted}"
        return f"{exact_words(self.whole)} in {self.whole.measure}{through}"


# Approvals of plans, as a ledger keeps them: who approved which fingerprint, for which budget, how
# often and until when; and the plan itself.
#
# An approval is a record of the ledger's chain like any other, so adding, altering or dropping it
# is as hard, and as visible, as for a charge. It is bound to what its reviewer saw: the plan, the
# name of the budget, the ledger and the amount. When any of these is another one, it does not
# count. What it approves is kept with it, so that another plan can be compared with it later.

_OLD_FIELDS = {"plan", "signature"}
_FIELDS = _OLD_FIELDS | {"id", "ledger", "budget", "runs", "until"}
_ALLOWED = "parameters"
"""A field of approvals of a range of parameters alone."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One approved plan, or all plans that differ from it only in values of parameters."""

    name: str  # The budget that the plan may be charged to
    # The fingerprint of the plan; for an approval of a range, that of its template, the plan
    # without the values.
    fingerprint: str
    by: str  # Who approved it
    time: datetime  # When, UTC
    document: str  # The plan as JSON
    signature: str | None  # The signature of the whole approval; None if unsigned
    # Another one for each approval, so that a copy of one is known; None in old records.
    id: str | None = None
    ledger: str | None = None  # The identity of the ledger that it is for
    # The amount that it is for. Old records name none: then that which the budget had when they
    # were written, and None if it was not open.
    bound: Bound | None = None
    # How often the plan may be charged; None for as often as the budget allows.
    runs: int | None = None
    until: date | None = None  # The last day on which it may be, UTC
    number: int = 0  # The number of the record
    used: int = 0  # How often the plan was charged by it
    revoked: str | None = None  # Who took it back, if anybody did
    # What parameters of the plan may be; those that are not here are as they are in the plan.
    allowed: Allowed = ()

    @property
    def is_old(self) -> bool:
        """Whether it was written when approvals named neither ledger nor amount."""
        return self.id is None

    @property
    def left(self) -> int | None:
        """How many runs are left; None for any number."""
        return None if self.runs is None else self.runs - self.used

    def signed_fields(self) -> list[object]:
        """All that its signature covers."""
        amount = None if self.bound is None else self.bound.fields()
        until = None if self.until is None else self.until.isoformat()
        fields = [self.id, self.ledger, self.name, self.fingerprint, self.by]
        ranges = [allowed_fields(self.allowed)] if self.allowed else []
        return [*fields, amount, self.runs, until, *ranges]

    def allows(self, fingerprint: str | None, covered: Covered | None) -> bool:
        """Whether a charge may name it: for its plan, for one that its template covers, or for one
        whose fingerprint the edition before would have made so.
        """
        if covered is None:
            return not self.allowed and fingerprint == self.fingerprint
        if covered.parameters and not self.allowed:  # an approval of one plan leaves none open
            return False
        return covered.template == self.fingerprint and covers_all(self.allowed, covered.parameters)

    def limits(self) -> str:
        """How often and until when, in words; empty when there is no limit."""
        runs = "" if self.runs is None else f"{self.used} of {self.runs} runs"
        until = "" if self.until is None else f"until {self.until}"
        revoked = "" if self.revoked is None else f"revoked by {self.revoked}"
        ranges = ", ".join(f"{name} {found.words}" for name, found in self.allowed)
        return ", ".join(part for part in (ranges, runs, until, revoked) if part)


def read_approval(record: Record) -> Approval:
    """The approval that a record holds. Raises `ValueError, TypeError` when it holds none."""
    fields = json.loads(record.why or "")
    if not isinstance(fields, dict) or not record.fingerprint:
        raise ValueError
    document, signature = fields.get("plan"), fields.get("signature")
    if not isinstance(document, str) or not isinstance(signature, str | None) or not record.who:
        raise TypeError
    time = datetime.fromisoformat(record.time)
    made = record.name, record.fingerprint, record.who, time, document, signature
    if fields.keys() == _OLD_FIELDS:
        return Approval(*made, number=record.seq)
    allowed = read_allowed(fields.pop(_ALLOWED)) if _ALLOWED in fields else ()
    if fields.keys() != _FIELDS:
        raise ValueError
    given, ledger, runs, until = (fields[key] for key in ("id", "ledger", "runs", "until"))
    if not isinstance(given, str) or not isinstance(ledger, str):
        raise TypeError
    if runs is not None and (type(runs) is not int or runs < 1):
        raise ValueError
    day = None if until is None else date.fromisoformat(until)
    bound = Bound.read(fields["budget"])
    return Approval(*made, given, ledger, bound, runs, day, number=record.seq, allowed=allowed)


Signed = Literal[
    "unsigned",
    "signed, not checked",
    "signed",
    "signature is wrong",
    "signed without the amount",
]


def signed(approval: Approval, key: ApprovalKey | None) -> Signed:
    """The state of its signature, checked with the available key."""
    if approval.signature is None:
        return "unsigned"
    if approval.is_old:
        return "signed without the amount"
    if key is None:
        return "signed, not checked"
    right = key.verifies(approval.signature, *approval.signed_fields())
    return "signed" if right else "signature is wrong"


def valid(approvals: Iterable[Approval], key: ApprovalKey | None) -> Iterator[Approval]:
    """The approvals made by a person who may approve: with a key, only those that it verifies."""
    return (a for a in approvals if key is None or signed(a, key) == "signed")


@dataclass(frozen=True, slots=True)
class Covered:
    """How an approval of another fingerprint covers a charge: by the template of the plan and the
    parameters that may have other values, or by the fingerprint that the previous edition would
    have made, without parameters.
    """

    template: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """What approvals of other fingerprints than a plan's look at in it."""

    parameters: tuple[Parameter, ...]  # All of its parameters
    # Its fingerprint without the values of some, given what these may be, in words, by name.
    template: Callable[[Mapping[str, str]], str]
    # Whether an approval that the edition before recorded, whose fingerprints covered less, is of a
    # plan that says all that this one does but types of columns.
    is_same: Callable[[Approval], bool]

    def covered(self, approval: Approval) -> Covered | None:
        """How an approval of another fingerprint covers the plan; None where it does not."""
        if not covers_all(approval.allowed, self.parameters):
            return None
        names = {name for name, _ in approval.allowed}
        given = tuple(parameter for parameter in self.parameters if parameter.name in names)
        template = ""
        if approval.allowed:
            template = self.template({name: found.words for name, found in approval.allowed})
        if template == approval.fingerprint or self.is_same(approval):
            return Covered(approval.fingerprint, given)
        return None


@dataclass(frozen=True, slots=True)
class Requirement:
    """The requirement that a charge has an approval, and which approvals count."""

    key: ApprovalKey | None  # What verifies them, if anything does
    # The plan that is charged, for approvals of a range; without it none of these counts.
    planned: Planned | None = None

    def covered(self, approval: Approval) -> Covered | None:
        """How an approval of another fingerprint covers the plan; None where it does not."""
        return None if self.planned is None else self.planned.covered(approval)

    def same(self, approvals: Iterable[Approval], fingerprint: str) -> list[Approval]:
        """Those that are of the plan, or of a range that it is in."""
        return [a for a in approvals if self._is_of(a, fingerprint)]

    def _is_of(self, approval: Approval, fingerprint: str) -> bool:
        return approval.allows(fingerprint, None) or self.covered(approval) is not None

    def why_not(self, approval: Approval, ledgers: Collection[str], bound: Bound) -> str | None:
        """Why an approval does not count for the current budget; None if it does.

        `ledgers` are the identities of its ledger, because a ledger that was moved has a new one
        and keeps its approvals.
        """
        if (lapsed := self.why_lapsed(approval, ledgers)) is not None:
            return lapsed
        if approval.bound is None:
            return "names no amount, and was recorded before its budget was opened"
        if approval.bound != bound:
            return f"is for {approval.bound.words()}, and the budget is now {bound.words()}"
        if approval.left is not None and approval.left < 1:
            return f"was for {approval.runs} run{'s' if approval.runs != 1 else ''}, already used"
        return None

    def why_lapsed(self, approval: Approval, ledgers: Collection[str]) -> str | None:
        """Why an approval does not count for any amount and number of runs; None if it does."""
        if approval.revoked is not None:
            return f"was revoked by {approval.revoked}"
        if self.key is not None and (state := signed(approval, self.key)) != "signed":
            return _UNSIGNED.get(state, f"is not signed with the key in {KEY_VARIABLE}")
        if not approval.is_old and approval.ledger not in ledgers:
            return "is for another ledger"
        if approval.until is not None and approval.until < windows.now().date():
            return f"ended after {approval.until}"
        return None

    def require_standing(
        self, approvals: Sequence[Approval], fingerprint: str, ledgers: Collection[str]
    ) -> None:
        """Refuse to continue after a charge if all its approvals have lapsed. Raises `PlanMismatch`
        with the reason why the newest approval has lapsed.
        """
        why = "it has no approval"
        for approval in self.same(approvals, fingerprint):
            lapsed = self.why_lapsed(approval, ledgers)
            if lapsed is None:
                return
            why = f"the approval by {approval.by} of {approval.time:%Y-%m-%d} {lapsed}"
        raise PlanMismatch(
            f"the plan {fingerprint[:16]} is no longer approved",
            why=why,
            remedy=(
                "have it approved again: `dpframe approve PLAN.json --by WHO`",
                "read earlier results, which needs no approval",
            ),
        )

    def counting(
        self, approvals: Sequence[Approval], ledgers: Collection[str], bound: Bound
    ) -> Iterator[Approval]:
        """Those that count, what may run without limit first."""
        found = (a for a in approvals if self.why_not(a, ledgers, bound) is None)
        return iter(sorted(found, key=lambda a: (a.left is not None, a.until or date.max)))

    def chosen(
        self,
        approvals: Sequence[Approval],
        fingerprint: str,
        ledgers: Collection[str],
        bound: Bound,
    ) -> Approval:
        """The approval that a charge uses. Raises `PlanMismatch` when no approval counts."""
        same = self.same(approvals, fingerprint)
        approval = next(self.counting(same, ledgers, bound), None)
        if approval is None:
            raise PlanMismatch(
                f"the plan {fingerprint[:16]} is not approved",
                why=self.reasons(same, ledgers, bound),
                remedy="have it approved: `dpframe approve PLAN.json --by WHO`",
            )
        return approval

    def reasons(
        self, approvals: Sequence[Approval], ledgers: Collection[str], bound: Bound
    ) -> str | None:
        """Why none of some approvals counts, the newest first; None if there are no
        approvals."""
        if not approvals:
            return None
        newest = approvals[-1]
        more = f"; {len(approvals) - 1} earlier did not count either" if len(approvals) > 1 else ""
        why = self.why_not(newest, ledgers, bound)
        return f"the approval by {newest.by} of {newest.time:%Y-%m-%d} {why}{more}"


_UNSIGNED: dict[Signed, str] = {
    "signed without the amount": "was signed when signatures did not name the amount",
}
