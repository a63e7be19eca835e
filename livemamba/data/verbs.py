"""English verbs of the kitchen: which words are verbs, and their past tense. No torch."""

# Verbs that occur in recipes, in the annotators' words and in narrations. In a text, a word counts as a verb
# only where a verb can stand (at its start, after "and", "or", "then", "to"): most are nouns as well.
_REGULAR = """
add allow apply ask assemble bake baste blend blitz boil brush carry change char check chop clean clear close coat
collect combine compress contaminate continue cook cool core cover crack create cross crumble crush dice dip discard
dissolve drain dredge drizzle drop dry empty enable ensure extract fill flatten flavour flip fold follow form fry
garnish gather grate grease grill grind halve heat help increase insert invert knead ladle leak lift line lower
marinate mark mash measure melt microwave mince mix move need open overcook overfill pack pat peel pick pile pinch
pipe place plate pour preheat prepare press prevent pull puree push reach reduce remove repeat replace rest return
rinse roast roll rotate rub sauté scoop score scrape seal sear season secure seed separate serve shave shift shred
sift simmer skip slice soak soften spatter spill spiralize splash spoon spray sprinkle squash squeeze squish start
steam steep stir stop strain stretch stuff switch taste thaw thicken tilt time tip toast top toss touch transfer trim
try turn undercook use wait wash weigh wet whip whisk wipe work wrap
"""
_IRREGULAR = {
    "beat": "beat",
    "become": "became",
    "begin": "began",
    "break": "broke",
    "bring": "brought",
    "burn": "burnt",
    "buy": "bought",
    "choose": "chose",
    "come": "came",
    "cut": "cut",
    "do": "did",
    "fall": "fell",
    "flow": "flowed",
    "forget": "forgot",
    "freeze": "froze",
    "get": "got",
    "give": "gave",
    "go": "went",
    "grind": "ground",
    "hang": "hung",
    "have": "had",
    "hold": "held",
    "keep": "kept",
    "lay": "laid",
    "leave": "left",
    "let": "let",
    "lose": "lost",
    "make": "made",
    "pat": "patted",
    "put": "put",
    "read": "read",
    "rise": "rose",
    "run": "ran",
    "saute": "sautéed",
    "set": "set",
    "shake": "shook",
    "sit": "sat",
    "slide": "slid",
    "spin": "spun",
    "split": "split",
    "spread": "spread",
    "stand": "stood",
    "stick": "stuck",
    "take": "took",
    "tear": "tore",
    "throw": "threw",
    "wet": "wetted",
}
VERBS = frozenset(_REGULAR.split()) | frozenset(_IRREGULAR)

_VOWELS = "aeiou"
# One syllable, one vowel, one consonant: the consonant doubles. Longer words whose last syllable is stressed.
_DOUBLED_LONG = frozenset({"transfer", "unwrap", "begin", "forget"})


def past(verb: str) -> str:
    """The past tense of a verb in its base form: "chop" -> "chopped", "cut" -> "cut"."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("é"):
        return verb + "ed"
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def gerund(verb: str) -> str:
    """The -ing form of a verb in its base form: "chop" -> "chopping", "use" -> "using"."""
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


def _doubled(verb: str) -> str:
    short = len(verb) > 2 and verb[-1] not in _VOWELS + "wxy" and verb[-2] in _VOWELS and verb[-3] not in _VOWELS
    one_syllable = sum(letter in _VOWELS for letter in verb) == 1 or verb.startswith("qu")
    return verb + verb[-1] if (short and one_syllable) or verb in _DOUBLED_LONG else verb


PAST_OF = {verb: past(verb) for verb in sorted(VERBS)}
BASE_OF_PAST = {form: verb for verb, form in PAST_OF.items()} | {"teared": "tear", "burned": "burn"}
BASE_OF_GERUND = {gerund(verb): verb for verb in sorted(VERBS)}
