"""What English and code add around the words that matter: stop words, endings, short forms."""

from __future__ import annotations

_STOP = """
    a about above across after again against all almost along already also although always am among an and another
    any anything are around as ask asked at away back be because been before being below best better between both
    bring but by can cannot careful carefully certain clear clearly code codebase come comes concise could current
    currently decide deep describe detail detailed details determine did different directory do docs does doing done
    down during each either else end enough ensure etc even every everything exact exactly examine exist existing
    exists explain explore far few file files find finding first five follow following for four from full function
    functions further get gets give given gives go goes going good got had happen happens has have having help her
    here high him his how however i identify if important in include included including inside inspect instead into
    investigate involved is it its itself just keep know large last least less let like likely lines little locate
    located look looking made main make makes making many may maybe me mention mentioned might more most much must
    my near need needed needs never new no none nor not nothing now of off often on once one ones only onto or other
    others our out over overview own part parts people per perhaps places please possible project provide put
    quickly quite rather reading really related relevant repo repository review right said same say says second see
    seem seems several shall she short should show shows simple simply since small so some something still such sum
    summarise summarize sure take takes tell than that the their them then there these they thing things this those
    though three through thus to today together too top toward two under understand until up upon us use used useful
    uses using usually various very via want was way ways we well were what when where whether which while who whole
    whom whose why will with within without would wrong yes yet you your
"""
_WEAK = """
    add bug bugs build call called calls change changes check convert create delete edit evaluate example examples
    final fix folder generate handle handled handles implement input install issue item items kind level line list
    method methods migrate module modules move name named names next number order output path paths place point
    present problem question read refactor remove rename replace report result results return returns run runs scan
    search set sets source start started summary task tasks test tests total tree try turn type types update upgrade
    work works write
"""

STOP_WORDS = frozenset(_STOP.split())
WEAK_WORDS = frozenset(_WEAK.split())
"""Words that may be the subject of a task but mostly are its wrapping: looked for when little else is said."""

_ENDINGS = (
    ("ations", "", 5),
    ("ation", "", 5),
    ("ings", "", 3),
    ("ing", "", 3),
    ("edly", "", 4),
    ("ied", "", 3),
    ("ies", "", 3),
    ("ed", "", 3),
    ("sses", "ss", 2),
    ("ches", "ch", 2),
    ("shes", "sh", 2),
    ("xes", "x", 2),
    ("s", "", 3),
    ("e", "", 6),
)
"""Ending, what stands for it, and how many letters must be left; the first that fits is taken."""
_KEEP = ("ss", "us", "is", "eed", "thing")
"""Words that end so only look inflected."""


def stem(word: str) -> str:
    """Cut an English ending off, so that a search also finds the word's other forms: authenticated, authenticat."""
    if word.endswith(_KEEP):
        return word
    for ending, replacement, least in _ENDINGS:
        left = word.removesuffix(ending)
        if left == word or len(left) < least:
            continue
        if ending in ("ing", "ings", "ed") and len(left) > 3 and left[-1] == left[-2] and left[-1] not in "lsz":
            left = left[:-1]
        return stem(left) if ending == "s" else left + replacement
    return word


_ABBREVIATED = """
    admin administrator administration
    app application
    arg argument
    async asynchronous
    attr attribute
    auth authenticate authentication authorize authorise authorization authorisation
    cmd command
    config configure configuration
    conn connection
    ctx context
    db database
    dep dependency dependencies
    dev development
    dict dictionary
    dir directory directories
    doc document documentation
    env environment
    err error
    exc exception
    exec execute execution
    expr expression
    init initialize initialise initialization initialisation
    lib library libraries
    msg message
    num number
    param parameter
    passwd password
    proc process
    prod production
    prop property properties
    ref reference
    repo repository repositories
    req request
    res response
    spec specification
    stat statistic
    sync synchronize synchronise synchronization
    temp temporary
    util utility utilities
    var variable
"""
_SHORT_FORMS = {
    stem(word): short for short, *words in map(str.split, _ABBREVIATED.strip().splitlines()) for word in words
}


def short_form(word_stem: str) -> str:
    """Return how code usually abbreviates a word, or an empty string."""
    return _SHORT_FORMS.get(word_stem, "")
