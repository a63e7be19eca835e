import json

import networkx as nx
import pytest

from livemamba.errors import InputError, MissingError
from livemamba.recipe import Plan, load_recipe, recipe_from_dict, recipe_from_task_graph
from livemamba.wording import action_text


def _recipe(steps, **more):
    return recipe_from_dict({"name": "Dish", "steps": steps, **more}, where="dish.yaml")


def test_a_list_is_a_chain():
    recipe = _recipe(["Cut", "Stir", "Serve"])
    assert recipe.plan == Plan((("1",), ("2",), ("3",)))
    assert recipe.ancestors("3") == {"1", "2"}
    assert recipe.descendants("1") == {"2", "3"}


def test_once_one_step_says_after_all_mean_it():
    recipe = _recipe(
        [
            {"id": "eat", "text": "Eat", "after": ["fry", "cut"]},
            {"id": "cut", "text": "Cut"},
            {"id": "fry", "text": "Fry"},
        ]
    )
    assert recipe.plan.node_ids == ("cut", "fry", "eat")
    assert recipe.ancestors("fry") == frozenset()


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        ({"steps": []}, "no steps"),
        ({"name": "x"}, "no steps"),
        (["a", "b"], "a mapping"),
        ({"steps": ["a", 3]}, "step 2 is a int"),
        ({"steps": ["a", {"id": "b"}]}, "step 2 has no text"),
        ({"steps": [{"text": "a", "id": "1", "after": ["9"]}]}, "'9', which is no step"),
        ({"steps": [{"text": "a", "id": "x"}, {"text": "b", "id": "x"}]}, "'x' 2 times"),
        ({"steps": ["a"], "serves": 4}, "unknown key 'serves'"),
        ({"steps": [{"text": "a", "aftre": "b"}]}, "unknown key 'aftre'"),
        (
            {"steps": [{"id": "a", "text": "a", "after": "c"}, {"id": "b", "text": "b", "after": "a"}, {"id": "c", "text": "c", "after": "b"}]},
            "circle",
        ),
        ({"steps": [{"text": "a", "instruction": 5}]}, "give a sentence"),
        ({"name": 5, "steps": ["a"]}, "must be texts"),
    ],
)  # fmt: skip
def test_what_is_no_recipe_is_refused_with_the_place(data, rule):
    with pytest.raises(InputError, match=rule) as caught:
        recipe_from_dict(data, where="dish.yaml")
    assert str(caught.value).startswith("dish.yaml")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_recipe_are_refused(tmp_path):
    with pytest.raises(MissingError, match="does not exist"):
        load_recipe(tmp_path / "none.yaml")
    with pytest.raises(MissingError, match="does not exist"):
        load_recipe(tmp_path / "none.json")
    with pytest.raises(MissingError, match="is a folder"):
        load_recipe(tmp_path)
    for name, text, rule in [
        ("empty.yaml", "", "is empty"),
        ("broken.yaml", "steps: [a", "line 1: not YAML"),
        ("twice.yaml", "name: a\nname: b\nsteps: [c]", "'name' stands twice"),
        ("broken.json", "{", "not a readable task graph"),
        ("other.json", '{"a": 1}', "'steps' and 'edges'"),
        ("edge.json", '{"steps": {"0": "START", "1": "Cut-Cut it"}, "edges": [[0, 7]]}', "names node '7'"),
        ("loop.json", '{"steps": {"1": "Cut-Cut", "2": "Eat-Eat"}, "edges": [[1, 2], [2, 1]]}', "circle"),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=rule) as caught:
            load_recipe(tmp_path / name)
        assert name in str(caught.value)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="not a text file"):
        load_recipe(tmp_path / "binary.yaml")


def test_sentences():
    recipe = _recipe(["Cut an onion.", {"text": "Add A4 paper"}, {"text": "TV off", "instruction": "Turn it off!"}])
    assert recipe.instruction(("1",)) == "Now cut an onion."
    assert recipe.instruction(("1", "2")) == "Now cut an onion and add A4 paper."
    assert recipe.instruction(("1", "2", "3")) == "Now cut an onion, add A4 paper and TV off."
    assert recipe.instruction(("3",)) == "Turn it off!"
    with pytest.raises(InputError, match="no step '9'"):
        recipe.instruction(("9",))


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Add-Add basil to the bowl", "Add basil to the bowl"),
        ("chop-chop 1 scallion", "Chop 1 scallion"),
        ("Pour-Slowly pour the rest", "Slowly pour the rest"),
        ("Top-the cup with salsa", "Top the cup with salsa"),
        ("Microwave -Microwave the cup in a microwave-safe bowl", "Microwave the cup in a microwave-safe bowl"),
        ("Serve", "Serve"),
    ],
)
def test_the_action_inside_a_description(description, text):
    assert action_text(description) == text


def test_every_real_task_graph_is_a_recipe_in_order(test_data):
    files = sorted((test_data / "data" / "captaincook4d" / "task_graphs").glob("*.json"))
    assert len(files) == 24
    for file in files:
        data = json.loads(file.read_text())
        recipe = load_recipe(file)
        # Independently: the same nodes but START and END, every edge in order.
        real = {node for node, text in data["steps"].items() if text not in ("START", "END")}
        place = {node: index for index, node in enumerate(recipe.plan.node_ids)}
        assert set(place) == real
        graph = nx.DiGraph([(str(a), str(b)) for a, b in data["edges"]])
        for node in real:
            assert recipe.ancestors(node) == nx.ancestors(graph, node) & real
            assert all(place[before] < place[node] for before in recipe.ancestors(node))


def test_plans_are_values():
    plan = Plan((("a",), ("b", "c"), ("d",)))
    assert plan.current == ("a",)
    assert plan.without(["a", "c"]) == Plan((("b",), ("d",)))
    assert plan.with_first(("z",)).node_ids == ("z", "a", "b", "c", "d")
    assert plan.node_ids == ("a", "b", "c", "d")
    assert "c" in plan and "x" not in plan and len(plan) == 3 and not Plan()
    with pytest.raises(InputError, match="more than once"):
        plan.with_first(("b",))
    with pytest.raises(InputError, match="empty step"):
        Plan(((),))
    with pytest.raises(InputError, match="no current step"):
        _ = Plan().current


def test_a_graph_in_memory_keeps_its_own_ids():
    recipe = recipe_from_task_graph(
        {"steps": {"0": "START", "5": "Cut-Cut it", "9": "Eat-Eat it", "3": "END"}, "edges": [[0, 5], [5, 9], [9, 3]]},
        name="x",
    )
    assert recipe.plan.node_ids == ("5", "9")
