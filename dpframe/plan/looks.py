"""Columns and values whose names and forms alone look like identifiers of people."""

from __future__ import annotations

import re
from typing import Final


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE: Final = words_of(
    """
    user customer client patient person people passenger rider driver member employee student
    teacher subject participant respondent individual citizen resident tenant household visitor
    subscriber applicant borrower cardholder account uid userid customerid patientid personid
    pupil voter guest holder owner worker staff buyer shopper reader learner player donor inmate
    prisoner claimant policyholder taxpayer beneficiary insured candidate human child mother father
    kunde kundin kunden patientin schueler schüler mitarbeiter mitarbeiterin mieter versicherte
    versicherter bürger buerger klient élève eleve étudiant etudiant salarié salarie assuré assure
    usager cliente paciente alumno alumna empleado usuario ciudadano utente aluno funcionario klant
    leerling kund elev anställd asiakas potilas pacjent klientka zakaznik
    """
)
_PERSONAL: Final = words_of(
    """
    email mail phone mobile msisdn imei imsi ssn passport iban mrn username login surname lastname
    forename firstname fullname nin nhs cookie cookies mac ip cpf cnp pesel bsn curp rfc nif nie dni
    nir avs ahv svnr sozialversicherungsnummer personnr personnummer fodselsnummer cpr hetu aadhaar
    aadhar pan sin tfn rut plate licence license numberplate kennzeichen matricule matricula handle
    nickname pseudonym telephone telefon tel handynummer kundenr kundennr kundennummer patientennr
    patientnr personalnr personalnummer versichertennummer mitgliedsnummer matrikelnummer mitglnr
    empno empnr employeeno idfa gaid udid fingerprint nino niss insz vin
    """
)
_NUMBERS: Final = words_of(
    """
    id ids uuid guid no nr num number key code hash ref token name names address adresse mail
    kennung nummer numero numéro número
    """
)
_OF_PEOPLE: Final = words_of(
    "emp pat cust stud pers nhs phone card device ip mac passport medicare social tax kunden "
    "personal insurance badge licence license mobile contract policy"
)
"""What a number, an address or a name is a person's by."""
_THINGS: Final = words_of(
    """
    row record line trip ride event order item product article category city country region state
    district zone zip area location place station shop store branch department school hospital ward
    visit session request page vehicle car job batch run day week month year transaction payment
    invoice ticket company vendor supplier class course room team group model type status currency
    route stop flight train bus platform campaign file source sensor site diagnosis drug test
    """
)
"""Numbered things that are not people."""
_EVENTS: Final = words_of(
    """
    row record line trip ride event order visit session request transaction payment invoice ticket
    booking reservation stay admission appointment encounter consultation claim call message click
    purchase basket receipt shift loan checkout login exam test sale delivery parcel rental journey
    besuch bestellung buchung fahrt rechnung termin auftrag beleg fall commande visite achat facture
    sejour séjour pedido visita compra factura reserva viaje consulta ordine acquisto bezoek
    bestelling
    """
)
"""What one person has several of."""
_FLAGS: Final = words_of("is has was ist hat")
"""How names of columns begin that are true or false: ``is_member``."""
_WORD: Final = re.compile(r"[A-ZÀ-Þ]+(?![a-zß-ÿ])|[A-ZÀ-Þ]?[a-zß-ÿ]+|\d+")


def name_words(name: str) -> list[str]:
    """The words of a column's name in lower case, without numbers at its end."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    return words


def looks_identifying(name: str) -> bool:
    """Whether a column is named like an identifier of people: ``patient``, ``user_id``,
    ``customerNumber``, ``email``. Names such as ``trip_id`` or ``city_code`` identify something
    else.
    """
    words = name_words(name)
    if not words or words[0] in _FLAGS:
        return False
    *before, last = words
    together = "".join(words)
    if last in _PEOPLE or last.rstrip("s") in _PEOPLE or last in _PERSONAL or together in _PERSONAL:
        return True
    if last in ("id", "ids", "uuid", "guid"):
        return not before or before[-1] not in _THINGS | _EVENTS
    of_person = bool(before) and (before[-1] in _PEOPLE | _OF_PEOPLE or before[-1] in _PERSONAL)
    return last in _NUMBERS and of_person


def looks_like_an_event(name: str) -> bool:
    """Whether a column is named as those are that number what one person has several of:
    ``order_id``, ``visit``, ``booking_no``.
    """
    words = name_words(name)
    if words and words[-1] in _NUMBERS:
        words.pop()
    return bool(words) and (words[-1] in _EVENTS or words[-1].rstrip("s") in _EVENTS)


_FORENAMES: Final = words_of(
    """
    anna anne ann maria mary marie john jon jean jan johan johann johannes juan joão joao hans peter
    pierre pedro paul pablo paolo michael michel miguel david daniel thomas tomas tom martin markus
    marcus mark marc marco luca lucas lukas laura julia julie juliette sarah sara emma emily emilia
    sofia sophie sophia olivia ella mia lea leah lena lina nina eva ewa elena helen helena hannah
    hanna ida ingrid karin karen kate katherine katharina catherine christine christina christian
    kristina sabine monika monica susan susanne andrea andreas andrew andré andre alexander
    alexandra alex ali ahmed ahmad mohamed mohammed muhammad fatima aisha omar hassan ibrahim yusuf
    mehmet ayse ayşe can james robert william richard charles joseph george henry jack oliver noah
    liam max maximilian felix leon louis luis jose josé carlos antonio francisco manuel javier
    fernando diego carmen isabel lucia lucía ana rosa teresa giulia francesca giovanni giuseppe
    mario luigi stefan stefano stephen steven simon samuel sam adam benjamin ben jakob jacob nils
    lars sven erik eric karl carl otto fritz heinrich wolfgang klaus jürgen jurgen uwe ralf dieter
    werner petra ursula brigitte claudia nicole nathalie chloé chloe camille léa manon hugo arthur
    jules nicolas antoine françois francois jacques claude philippe olga natalia irina svetlana
    tatiana ivan dmitri sergei alexei boris piotr paweł pawel tomasz krzysztof agnieszka katarzyna
    magdalena małgorzata jana petr jiri jiří pavel wei li ming yuki hiroshi kenji akira priya rahul
    raj amit anita arjun deepak sanjay sunita grace ruth esther rachel rebecca deborah jessica
    jennifer linda lisa elizabeth elisabeth margaret barbara patricia nancy betty dorothy sandra
    ashley kimberly donna carol amanda melissa stephanie sharon cynthia kathleen amy angela brenda
    pamela kevin brian edward ronald timothy jason jeffrey ryan gary nicholas jonathan larry justin
    scott brandon frank gregory raymond patrick dennis jerry tyler aaron nathan kyle walter ethan
    jeremy harold keith roger terry sean gerald dylan bruce ralph roy eugene wayne elif zeynep
    """
)
_TITLES: Final = words_of(
    "mr mrs ms miss dr prof sir mme mlle monsieur madame herr frau sr sra señor señora"
)
_NAME: Final = re.compile(r"[^\W\d_][\w.'’-]*(?:,? [^\W\d_][\w.'’-]*){1,3}")
_INITIAL: Final = re.compile(
    r"[A-ZÀ-Þ]\.\s?(?:[A-ZÀ-Þ]\.\s?)?[A-ZÀ-Þ][\w'’-]+|[A-ZÀ-Þ][\w'’-]+,? [A-ZÀ-Þ]\."
)
_SURNAME_FIRST: Final = re.compile(r"[A-ZÀ-Þ][\w'’-]+, [A-ZÀ-Þ][\w.'’-]+")
_STREETS: Final = (
    r"street|st|road|rd|avenue|ave|lane|ln|drive|dr|close|court|square|terrace|way|row|crescent|"
    r"rue|allée|chemin|impasse|quai|boulevard|bd|place|via|viale|piazza|corso|calle|avenida|av|"
    r"plaza|paseo|rua|ulica|ul|ulice|aleja|cesta"
)
_ADDRESS: Final = re.compile(
    rf"\d+\s?[a-z]?,? (?:[\w'’.-]+ )*?(?:{_STREETS})\b|(?:\b(?:{_STREETS})\b\.?) .*\d|"
    r"\w[\w'’ .-]*(?:stra(?:ß|ss)e|str\.?|weg|gasse|platz|allee|ring|laan|straat|plein|gracht|"
    r"gatan|vägen|vagen|gade|vej|veien|katu|tie|utca|út) ?\d+\s?[a-z]?|"
    r"(?:[\w'’.-]+ )+(?:street|road|avenue|lane|drive|close|court|square|terrace) \d+",
    re.IGNORECASE,
)
_CODES: Final = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|\+\d[\d\s()/-]{7,}|0\d{2,4}[\s/-]\d[\d\s-]{4,}|"
    r"[A-Z]{2}\d{2}[A-Z0-9 ]{11,30}|\d{3}-\d{2}-\d{4}|(?:\d{1,3}\.){3}\d{1,3}|"
    r"\d{6}-\d{4}|\d{3}\.\d{3}\.\d{3}-\d{2}|756\.\d{4}\.\d{4}\.\d{2}"
)


def looks_like_a_person(text: str) -> str | None:
    """The kind of a value that identifies a person: ``"a name"``, ``"an address"``, or ``"a
    personal code"`` such as an e-mail address or a telephone number. None for other values.
    """
    text = text.strip()
    if _CODES.fullmatch(text):
        return "a personal code"
    if _ADDRESS.match(text) and any(c.isdigit() for c in text):
        return "an address"
    if _INITIAL.fullmatch(text) or _SURNAME_FIRST.fullmatch(text):
        return "a name"
    if _NAME.fullmatch(text) and text[:1].isupper():
        words = [word.strip(".,").lower() for word in text.replace("-", " ").split()]
        if words[0] in _TITLES:
            return "a name"
        capital = text.replace(",", "").split()[-1][:1].isupper()
        if capital and words[0] in _FORENAMES:
            return "a name"
    return None
