import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.data.sentences import core, divergence_text, mistake_text, past_tense, success_text
from livemamba.data.verbs import BASE_OF_GERUND, PAST_OF, VERBS, gerund
from livemamba.wording import action_text, instruction_text

SNAPSHOT = json.loads((Path(__file__).parent / "snapshots" / "sentences.json").read_text(encoding="utf-8"))


def sentences(description):
    text = action_text(description)
    return {"instruction": instruction_text([text]), "success": success_text(text)}


def test_the_snapshot_that_was_read_line_by_line():
    """All 352 descriptions of the corpus. A change of a rule shows here, to be read before it is accepted."""
    assert len(SNAPSHOT) == 352
    changed = {text: sentences(text) for text in SNAPSHOT if sentences(text) != SNAPSHOT[text]}
    assert not changed


def test_the_snapshot_holds_every_real_description(real_annotations):
    real = {action.description for r in real_annotations.recordings.values() for action in r.actions}
    assert real == set(SNAPSHOT)


def test_no_amount_is_lost_in_an_instruction():
    for description, said in SNAPSHOT.items():
        assert re.findall(r"\d+", description) == re.findall(r"\d+", said["instruction"]), description


@pytest.mark.parametrize(
    ("imperative", "past"),
    [
        ("Chop 1 scallion", "chopped 1 scallion"),
        ("Cut the onion", "cut the onion"),
        ("Extract and add the contents of an egg", "extracted and added the contents of an egg"),
        ("Chop or grate the cucumber", "chopped or grated the cucumber"),
        ("Measure the salt and add it to the mug", "measured the salt and added it to the mug"),
        ("Slowly pour the water. Do not overfill the cup", "slowly poured the water"),
        ("Once the pan is hot, add the mushrooms", "added the mushrooms once the pan was hot"),
        ("Cook until the tops start to bubble", "cooked until the tops started to bubble"),
        ("Use scissors to cut the bag", "used scissors to cut the bag"),
        ("Melt the cheese (check it)", "melted the cheese"),
        ("Pick up a plate", "picked up a plate"),
        ("Mix flour, sugar and baking powder", "mixed flour, sugar and baking powder"),
    ],
)
def test_past_tense(imperative, past):
    assert past_tense(imperative) == past


@pytest.mark.parametrize(
    ("base", "past", "ing"),
    [
        ("stir", "stirred", "stirring"),
        ("peel", "peeled", "peeling"),
        ("dry", "dried", "drying"),
        ("use", "used", "using"),
        ("take", "took", "taking"),
        ("season", "seasoned", "seasoning"),
        ("transfer", "transferred", "transferring"),
        ("squeeze", "squeezed", "squeezing"),
        ("mix", "mixed", "mixing"),
        ("puree", "pureed", "pureeing"),
    ],
)
def test_verb_forms(base, past, ing):
    assert (PAST_OF[base], gerund(base)) == (past, ing)


def test_every_verb_of_the_corpus_is_known():
    firsts = {core(action_text(text)).split()[0].rstrip(",") for text in SNAPSHOT}
    assert {word for word in firsts if not word.endswith("ly")} <= VERBS
    assert len(BASE_OF_GERUND) == len(VERBS)


@pytest.mark.parametrize(
    ("note", "action", "told"),
    [
        ("Add 1 tbsp instead of 1/2 tbsp", "Add 1/2 tbsp butter", "You added 1 tbsp instead of 1/2 tbsp."),
        ("Adding 1 tsp milk to the bowl", "Add 1 tbsp milk", "You added 1 tsp milk to the bowl."),
        ("Add-Add 1/2 cup cheese", "Add 1/3 cup cheese", "You added 1/2 cup cheese."),
        ("Used whole milk", "Fill the mug", "You used whole milk."),
        ("1 instead of 1/3 tsp", "Add 1/3 tsp salt", "You used 1 instead of 1/3 tsp."),
        ("15 secs", "Grind the coffee beans", "You ground them for 15 secs."),
        ("bowl instead of plate", "Put it on a plate", "You used a bowl instead of a plate."),
        ("Didn't open the can of Tuna.", "Open a can of tuna", "You did not open the can of tuna."),
        ("Not peeling the onion", "Peel the onion", "You did not peel the onion."),
        ("chop instead of mince", "Mince the garlic cloves", "You chopped them instead of mincing them."),
        ("Instead of slicing, chopping the onion.", "Slice the onion", "You chopped the onion instead of slicing it."),
        ("Spill while adding", "Add the corn to the bowl", "You spilled some while adding it."),
        ("Peel improperly", "Peel one medium onion", "You peeled it improperly."),
        ("spill salt and use a spoon", "Add salt", "You spilled salt and used a spoon."),
        ("use mug instead of bowl", "Whisk the egg", "You used a mug instead of a bowl."),
        ("The pan is too hot", "Fry the egg", "The pan was too hot."),
        ("Burn it. Drop the pan", "Fry the egg", "You burnt it. You dropped the pan."),
    ],
)
def test_notes_are_told_to_the_person_who_did_it(note, action, told):
    assert mistake_text(note, action) == told


def test_notes_of_the_real_annotations_keep_their_amounts_and_read_as_sentences(real_annotations):
    for recording in real_annotations.recordings.values():
        for action in recording.actions:
            for tag in action.mistakes:
                told = mistake_text(tag.text, action_text(action.description))
                assert re.fullmatch(r"[A-Z].*[^.\s]\.", told) and "  " not in told, told
                assert not re.search(r"\b(?:You [a-z]+ing|it it|the the|a the|to the mug the)\b", told), told
                assert not told.startswith(DIVERGENCE_OPENINGS)
                lost = set(re.findall(r"\d+", tag.text)) - set(re.findall(r"\d+", told))
                assert not lost, (tag.text, told)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1).filter(lambda text: text.strip()), st.sampled_from(["Add salt", "Cut the onions", "Wait"]))
def test_any_note_is_told_somehow(note, action):
    assert mistake_text(note.strip(), action).strip()


def test_divergences_open_as_the_protocol_says():
    done_right, done_wrong = DIVERGENCE_OPENINGS
    assert divergence_text("Chop 1 scallion") == f"{done_right} You chopped 1 scallion."
    assert divergence_text("Once it is hot, add the oil", "Spill oil") == (
        f"{done_wrong} You seem to be trying to add the oil once it is hot. You spilled oil."
    )
