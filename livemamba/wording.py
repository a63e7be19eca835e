"""How actions are worded: imperative texts, and the one way in which the coach asks for them. No torch.

Source: spec/interactive_cooking.md (hazards of CaptainCook4D's descriptions).
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import yaml

_FILE = "wording.yaml"

# "Add-", "Top -", "Cut or tear-", "continue cooking-"; not the "microwave-" of "Use a microwave-safe bowl".
_VERB = re.compile(r"([A-Za-z]+(?: (?:and|or) [A-Za-z]+| [a-z]+ing)?) ?-(?=\S)")


@cache
def _mended() -> dict[str, str]:
    """Description -> text, for the descriptions whose own words aren't good English."""
    text = files("livemamba").joinpath(_FILE).read_text(encoding="utf-8")
    mended: dict[str, str] = yaml.safe_load(text)
    return mended


def action_text(description: str) -> str:
    """The imperative inside a CaptainCook4D description: "Add-Add basil to the bowl" -> "Add basil to the bowl".

    Descriptions are "verb-text", cut at the first hyphen; where the text lacks its verb, the verb is put
    back. Descriptions of the corpus that aren't good English are replaced (wording.yaml). Any other text is
    taken as the imperative itself.
    """
    description = re.sub(r"\s+", " ", description).strip()
    if description in _mended():
        return _mended()[description]
    verb, text = cut_verb(description)
    if verb and not set(_words(verb)) - {"and", "or"} & set(_words(text)):
        text = f"{verb} {text}"
    return capitalised(text)


def cut_verb(description: str) -> tuple[str, str]:
    """The verb and the text of "verb-text", both as they stand; the verb is empty where there is none."""
    match = _VERB.match(description)
    text = description[match.end() :].strip(" .") if match else ""
    if not match or not text:
        return "", description.strip(" .-")
    return match[1], text


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def capitalised(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """The text as it stands inside a sentence."""
    # "TV" and "A" (as in "A4 paper") keep their capitals: only a capital before a small letter is lowered.
    return text[0].lower() + text[1:] if len(text) > 1 and text[1].islower() else text


def joined(texts: Sequence[str]) -> str:
    """Several actions as one: "Peel the onion and chop the garlic".

    Texts of more than one sentence stay sentences: "Heat the pan. (It takes a minute.) Also chop the garlic".
    """
    first, *others = (text.rstrip(" .") for text in texts)
    parts = [first, *map(uncapitalised, others)]
    if len(parts) == 1:
        return first
    if any(re.search(r"[.!?)]( |$)", part) for part in parts):
        return ". Also ".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def instruction_text(texts: Sequence[str]) -> str:
    """The coach's sentence for a step, as in "Now chop 1 scallion".

    Args:
        texts: what to do, imperative, one for each action of the step.
    """
    asked = uncapitalised(joined(texts))
    # "Now, once the pan is hot, add ...": what comes before the verb is set off.
    comma = "," if re.match(r"(once|when|while|if|after|before|as soon as|in (a|an|the)) ", asked) else ""
    return f"Now{comma} {asked}" + ("" if asked.endswith((".", ".)")) else ".")
