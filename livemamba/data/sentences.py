"""What the coach says of an action that was done: right, wrong, or instead of another. No torch.

Made from CaptainCook4D's own words: the description of the action (as `livemamba.wording` mends it) and
the annotators' notes on what went wrong. Paper B.1, B.2; spec/interactive_cooking.md.
"""

import re

from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.data.mistake_notes import told
from livemamba.data.verbs import PAST_OF, VERBS, past
from livemamba.wording import uncapitalised

# Where "correctly" can't stand at the end: after this many words, after a clause, after another adverb.
_LONG_WORDS = 13
_CLAUSE = re.compile(
    r",|\b(until|when|once|while|after|before|so that|if|by \w+ing|for about)\b"
    rf"|\bto ({'|'.join(sorted(VERBS))})\b| more$"
)
# Nobody waits correctly, or mixes well correctly.
_AS_INSTRUCTED = frozenset({"allowed", "continued", "discarded", "kept", "let", "stopped", "took", "waited"})
_ADVERB = re.compile(r"^\w+ly\b|\b(well|gently|roughly|thoroughly)\b(?!-)(?! blended)")

_BEFORE_MAIN = re.compile(r"((?:once|when|while|after|as soon as)\b[^,]*), (?=[a-z])", re.IGNORECASE)
_SUBORDINATE = frozenset({"until", "when", "once", "while", "after", "if", "that"})
_CHANGES = "become begin boil change dissolve flow form melt move remain rise set soften start stop thicken turn"
_PRESENT = {"is": "was", "are": "were", "has": "had", "have": "had", "can": "could"} | {
    form: past(verb) for verb in _CHANGES.split() for form in (verb, f"{verb}s")
}


def core(text: str) -> str:
    """The heart of an imperative: its first sentence, without brackets, what comes before the verb put behind.

    "Once the pan is hot, add the mushrooms" -> "add the mushrooms once the pan is hot".
    """
    text = re.sub(r"\s*\([^)]*\)", "", text)
    text = re.split(r"\.\s+(?=[A-Z])", text)[0].rstrip(" .")
    text = re.sub(r"^then ", "", uncapitalised(text))
    before = _BEFORE_MAIN.match(text)
    return f"{text[before.end() :]} {before[1]}" if before else text


def past_tense(text: str) -> str:
    """An imperative as something that was done: "Peel and chop it" -> "peeled and chopped it".

    Args:
        text: an imperative; only its `core` is told.
    """
    words = core(text).split()
    after_conjunction, subordinate = True, False
    for place, word in enumerate(words):
        bare = word.rstrip(",")
        comma = word[len(bare) :]
        before = words[place - 1] if place else ""
        if subordinate and bare in _PRESENT and before not in ("to", "could"):
            words[place] = _PRESENT[bare] + comma
        elif after_conjunction and not subordinate and bare in VERBS:
            words[place] = PAST_OF[bare] + comma
        subordinate = (subordinate or bare in _SUBORDINATE) and not comma
        after_conjunction = bare in ("and", "or") or (after_conjunction and bare.endswith("ly"))
    return " ".join(words)


def success_text(text: str) -> str:
    """What is said of an action done right, as in "You poured 1 egg into the ramekin cup correctly".

    Args:
        text: what was done, imperative (`livemamba.wording.action_text`).
    """
    done = past_tense(text)
    if done.split()[0].rstrip(",") in _AS_INSTRUCTED or _ADVERB.search(done):
        return f"You {done}, as instructed."
    if len(done.split()) > _LONG_WORDS or _CLAUSE.search(done):
        return f"You correctly {done}."
    return f"You {done} correctly."


def mistake_text(note: str, text: str) -> str:
    """What is said of an action done wrong, as in "You added 1 tbsp instead of 1/2 tbsp".

    Args:
        note: the annotator's words on what went wrong; every fact of it is kept.
        text: what was asked, imperative.
    """
    return told(note, text)


def divergence_text(text: str, note: str | None = None) -> str:
    """What is said of an action that wasn't the one asked for.

    Args:
        text: what was done, imperative.
        note: what went wrong with it; None if it was done right.
    """
    done_right, done_wrong = DIVERGENCE_OPENINGS
    if note is None:
        return f"{done_right} You {past_tense(text)}."
    return f"{done_wrong} You seem to be trying to {core(text)}. {told(note, text)}"
