"""CaptainCook4D's notes on what went wrong, told to the person who did it. No torch.

The notes are written in haste and in every form: "Add 1 tbsp instead of 1/2 tbsp", "Adding more oil",
"Bowl instead of plate", "Not peeling it", "medium instead of high". Rules turn each form into a sentence
in the second person, past tense; notes that no rule does justice to stand whole in mistake_notes.yaml.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from livemamba.data.verbs import BASE_OF_GERUND, BASE_OF_PAST, PAST_OF, VERBS, gerund
from livemamba.wording import capitalised, cut_verb, uncapitalised

_FILE = "mistake_notes.yaml"


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return tables


def told(note: str, text: str) -> str:
    """A note as one or more sentences: "Adding 1 tsp milk" becomes "You added 1 tsp milk".

    Args:
        note: the annotator's words.
        text: the action that went wrong, imperative: its verb and object serve notes that have none.
    """
    note = re.sub(r"\s+", " ", note).strip()
    if note in _tables()["told"]:
        told_as: str = _tables()["told"][note]
        return told_as
    sentences = re.split(r"\.\s*(?=[A-Z]|$)", _without_verb_prefix(note))
    return " ".join(_sentence(_mended(sentence.strip(" .")), text) for sentence in sentences if sentence.strip(" ."))


def _without_verb_prefix(note: str) -> str:
    verb, text = cut_verb(note)
    first = verb.split()[0].lower() if verb else ""
    if first not in VERBS:
        return note
    return text if first in text.lower() else f"{verb} {text}"


@cache
def _repairs() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(rf"(?<![\w/-]){wrong}(?![\w-])"), right) for wrong, right in _tables()["mended"].items())


def _mended(sentence: str) -> str:
    sentence = uncapitalised(sentence)
    for wrong, right in _repairs():
        sentence = wrong.sub(right, sentence)
    sentence = re.sub(r" \((might [^)]+)\)", r", which \1", sentence)
    return _with_articles(sentence)


# --- forms ---------------------------------------------------------------------------------------------

_AMOUNT = re.compile(
    r"(?:(?:more|less|too|only|almost|twice|half)\b.* )?[\d./]+|half |too much |two |more than |less than "
)
_TIME = re.compile(r"(?:only |more than |less than )?[\d./]+(?: (?:instead of|to) [\d./]+|-[\d./]+)* ?(?:sec|min)")


def _sentence(note: str, text: str) -> str:
    it = _pronoun(text)
    instead = re.match(r"instead of ", note)
    if instead:
        turned = _turned(note[instead.end() :], it)
        if turned:
            return turned
    negated = re.match(r"(?:did )?not (?=\w)", note)
    if negated:
        return _negated(note[negated.end() :], it)
    adverb, verb, rest = _split_verb(note)
    if verb:
        return _closed(f"you {adverb}{PAST_OF[verb]}{_object(verb, rest, it)}")
    if _TIME.match(note):
        return _closed(f"you {_done_for(text, it)} for {note}")
    if _AMOUNT.match(note) or " instead of " in note:
        return _closed(f"you used {note}")
    return _closed(note)


def _turned(rest: str, it: str) -> str | None:
    """What follows "Instead of": "A, do B" becomes "You did B instead of A"; nothing where B has no verb."""
    words = rest.split(" ")
    for place in range(1, len(words)):
        verb = _base(words[place])
        if verb:
            due = " ".join(word for word in words[:place] if word not in ("only", "we", "just")).rstrip(",")
            only = "only " if "only" in words[:place] else ""
            done = "".join(f" {word}" for word in words[place + 1 :])
            return _closed(f"you {only}{PAST_OF[verb]}{_object(verb, f'{done} instead of {due}', it)}")
    return None


def _negated(rest: str, it: str) -> str:
    adverb, verb, after = _split_verb(rest)
    if verb:
        return _closed(f"you did not {adverb}{verb}{_object(verb, after, it)}")
    return _closed(f"it was not {rest}")


_ADVERBS = frozenset({"just", "also", "only", "never", "likely", "half", "then", "really"})


def _split_verb(words: str) -> tuple[str, str | None, str]:
    """An adverb that comes first, the verb in its base form, and what follows it."""
    first, _, rest = words.partition(" ")
    bare, adverb = first.rstrip(","), ""
    if rest and (bare in _ADVERBS or (bare.endswith("ly") and bare not in VERBS)):
        adverb, (first, _, rest) = f"{bare} ", rest.partition(" ")
        bare = first.rstrip(",")
    verb = _base(first)
    return (adverb, verb, first[len(bare) :] + (f" {rest}" if rest else "")) if verb else ("", None, words)


def _base(word: str) -> str | None:
    """The base form of a word that can be a verb."""
    word = word.rstrip(",")
    return word if word in VERBS else BASE_OF_GERUND.get(word) or BASE_OF_PAST.get(word)


def _done_for(text: str, it: str) -> str:
    words = re.findall(r"[a-zé]+", text.lower())
    verb = next((base for word in words if (base := _base(word)) and base not in ("keep", "continue")), "do")
    if verb == "wait":
        return "waited"
    return f"let {it} sit" if verb == "let" else f"{PAST_OF[verb]} {it}"


# --- objects and verbs that follow ---------------------------------------------------------------------

_NO_OBJECT = (
    r"(?=$|,|\.| (?:instead|rather|with|without|on|in(?! \d)|into|inside|to|for|from|using|until|too|very|while|"
    r"through|at|by|directly|properly|improperly|incompletely|completely|partially|correctly|straight|quickly|slowly|rapidly|tightly|"
    r"both vertically|slanted|well|enough|approximately|first|fully|gently|uncovered|after|before|such|so|"
    r"under|only (?:for|on|in|with|halfway)|(?:more than |less than )?[\d.]+ (?:min|sec)[a-z]*)\b)"
)
_TAKE_OBJECT = """
add beat blend boil brush chop clean coat combine cover crush cut drain drizzle drop dry extract fill flip fold garnish
grate grind heat invert mash measure microwave mince mix open pat peel place pour pull puree put rinse roll saute sauté
scoop season slice spiralize splash spoon spread sprinkle squeeze stir thaw toast top transfer trim whisk
"""
_TRANSITIVE = frozenset(_TAKE_OBJECT.split())


def _pronoun(text: str) -> str:
    """What stands for the action's object: "Mince the garlic cloves" -> "them"."""
    head = re.split(
        r"[,.(]| (?:with|in|into|inside|on|onto|to|for|from|over|under|of|until|roughly|well|dry|and|at|around|out)\b",
        re.sub(r"^(?:\w+ly|Measure and add|Extract and add|Pull out|Lay out|Use|Set aside) ", "", text),
    )[0]
    unit = re.search(r"\b(?:tablespoons|teaspoons|ounces|cups|minutes|seconds)\b", head)
    return "them" if head.endswith("s") and not head.endswith("ss") and not unit else "it"


def _object(verb: str, rest: str, it: str) -> str:
    """What follows the verb, with the object put back where the note leaves it out."""
    if verb in ("spill", "drop") and re.match(r"$| (?:while|out while)\b", rest):
        rest = f" some{rest}"
    elif verb in _TRANSITIVE and re.match(_NO_OBJECT, rest):
        rest = f" {it}{rest}"
    rest = re.sub(r"^( (?:it|them)|)( (?:more than |less than )?\d[\d.]* (?:to \d+ )?(?:min|sec))", r"\1 for\2", rest)
    return _verbs_told(_gerunds_with_object(rest, it))


def _gerunds_with_object(rest: str, it: str) -> str:
    """The verbs after "instead of" and "while" named, with an object: "instead of mince" is "instead of mincing it"."""

    def replaced(match: re.Match[str]) -> str:
        word = match["word"]
        verb = BASE_OF_GERUND.get(word)
        if verb is None and match["before"] != "while " and word not in ("clean", "slow"):
            verb = word if word in VERBS else None
        if verb is None:
            return match[0]
        after = rest[match.end() :]
        missing = verb in _TRANSITIVE and re.match(_NO_OBJECT, after)
        return f"{match['before']}{gerund(verb)}{f' {it}' if missing else ''}"

    return re.sub(r"(?P<before>\b(?:instead of|rather than|while|without) )(?P<word>[a-zé]+)\b", replaced, rest)


def _verbs_told(rest: str) -> str:
    """Verbs after "and", "then" and "but" are told in the past as well."""
    words = rest.split(" ")
    for place in range(1, len(words)):
        bare = words[place].rstrip(",.")
        joins = words[place - 1] in ("and", "then", "but") or words[place - 1 : place] == ["or"]
        part_of_list = bare in BASE_OF_GERUND and any(word in BASE_OF_GERUND for word in words[: place - 1])
        if joins and (bare in VERBS or bare in BASE_OF_GERUND) and not part_of_list:
            words[place] = PAST_OF[BASE_OF_GERUND.get(bare, bare)] + words[place][len(bare) :]
    return " ".join(words)


def _closed(sentence: str) -> str:
    return capitalised(sentence.rstrip(" .")) + "."


# --- articles ------------------------------------------------------------------------------------------


@cache
def _bare_nouns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    tools = "|".join(sorted(_tables()["tools"], key=len, reverse=True))
    has_article = r"(?!an? |the |your |another |this |same |one |each |using )"
    thing = rf"{has_article}(?P<noun>(?:[a-z-]+ )?(?:{tools}))(?![\w-])(?! (?:{tools})\b)"
    some = r"(?:use|used|using|take|took|taking|added|measured|instead of|rather than|in place of|with|as)"
    known = r"(?:in|into|to|on|onto|from|of|out of|inside|over)"
    return re.compile(rf"(?P<before>\b{some} ){thing}"), re.compile(rf"(?P<before>\b{known} ){thing}")


def _with_articles(sentence: str) -> str:
    """Put back the articles that notes leave out: "use mug instead of bowl" -> "use a mug instead of a bowl"."""
    some, known = _bare_nouns()
    first, _, rest = sentence.partition(" instead of ")
    if rest and not _base(first.split()[0]) and first.split()[-1] in _tables()["tools"]:
        sentence = f"{_a(first)} instead of {rest}"
    sentence = some.sub(lambda match: match["before"] + _a(match["noun"]), sentence)
    return known.sub(_the, sentence)


def _the(match: re.Match[str]) -> str:
    is_verb = match["before"] == "to " and match["noun"].split()[0] in VERBS  # "to whisk"
    return match[0] if is_verb else f"{match['before']}the {match['noun']}"


def _a(noun: str) -> str:
    if noun[0].isdigit() or noun.split()[0] in ("a", "an", "the"):
        return noun
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
