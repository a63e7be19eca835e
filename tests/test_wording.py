import pytest

from livemamba.wording import action_text, cut_verb, instruction_text, joined


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Measure and add-1.5 tbsp sugar to the bowl", "Measure and add 1.5 tbsp sugar to the bowl"),
        ("Measure and add-Measure and add 2 tbsp flour", "Measure and add 2 tbsp flour"),
        ("Cut or tear-Cut or tear the bread", "Cut or tear the bread"),
        ("continue cooking-continue cooking, stirring", "Continue cooking, stirring"),
        ("mixing-Keep mixing", "Keep mixing"),
        ("Coat -Coat a 6-oz. cup", "Coat a 6-oz. cup"),
        ("Use a microwave-safe bowl", "Use a microwave-safe bowl"),
        ("Chop-Chop   tomato ", "Chop tomato"),
        ("season-pepper to taste", "Season it with pepper to taste"),
    ],
)
def test_the_imperative_of_a_description(description, text):
    assert action_text(description) == text


def test_a_description_is_cut_at_its_first_hyphen():
    assert cut_verb("Place-Place 8-inch tortilla") == ("Place", "Place 8-inch tortilla")
    assert cut_verb("Serve") == ("", "Serve")


def test_the_one_way_to_phrase_an_instruction():
    assert instruction_text(["Chop 1 scallion"]) == "Now chop 1 scallion."
    assert instruction_text(["Cut it", "Fry it", "Eat it"]) == "Now cut it, fry it and eat it."
    assert instruction_text(["Once the pan is hot, add the oil"]) == "Now, once the pan is hot, add the oil."
    assert instruction_text(["Boil water. (Wait.)"]) == "Now boil water. (Wait.)"


def test_texts_of_several_sentences_stay_sentences():
    assert joined(["Heat it. It takes a minute", "Chop it"]) == "Heat it. It takes a minute. Also chop it"
