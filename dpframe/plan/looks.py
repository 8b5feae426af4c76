"""Columns whose names alone look like identifiers of people."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["looks_identifying"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE: Final = _words(
    """
    user customer client patient person people passenger rider driver member employee student
    teacher subject participant respondent individual citizen resident tenant household visitor
    subscriber applicant borrower cardholder account uid userid customerid patientid personid
    """
)
_PERSONAL: Final = _words(
    """
    email mail phone mobile msisdn imei imsi ssn passport iban mrn username login surname lastname
    forename firstname fullname nin nhs
    """
)
_NUMBERS: Final = _words(
    """
    no nr number key code hash ref name names
    """
)
_THINGS: Final = _words(
    """
    row record line trip ride event order item product article category city country region state
    district zone zip area location place station shop store branch department school hospital ward
    visit session request page vehicle car device vendor supplier company job batch run day week
    month year transaction payment invoice ticket
    """
)
"""Numbered things that are not people."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def looks_identifying(name: str) -> bool:
    """Whether a column is named like an identifier of people: ``patient``, ``user_id``,
    ``customerNumber``, ``email``. Names such as ``trip_id`` or ``city_code`` identify something
    else.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return False
    *before, last = words
    if last in _PEOPLE or last.rstrip("s") in _PEOPLE or last in _PERSONAL:
        return True
    if last in ("id", "ids", "uuid", "guid"):
        return not before or before[-1] not in _THINGS
    return last in _NUMBERS and bool(before) and before[-1] in _PEOPLE
