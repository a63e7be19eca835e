"""Recipes (steps and their graph) and plans (what is left to do). No torch.

Sources: spec/interactive_cooking.md (task graphs), spec/model.md (the re-planner's ancestor rule).
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx

from livemamba.errors import InputError
from livemamba.json_files import read_json
from livemamba.texts import check_text, listed
from livemamba.wording import action_text, instruction_text, joined
from livemamba.yaml_files import read_yaml

Step = tuple[str, ...]
"""Node ids that are done together: one for most steps, several for a compound one."""


@dataclass(frozen=True)
class Plan:
    """What is left to do, in order. Immutable: every change is a new plan.

    Attributes:
        steps: each a tuple of node ids; no step is empty, no id occurs twice.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if any(not step for step in self.steps):
            raise InputError(f"plan {self.steps!r} holds an empty step; leave it out")
        twice = [node for node, count in Counter(self.node_ids).items() if count > 1]
        if twice:
            raise InputError(f"plan holds {', '.join(twice)} more than once; give repeats ids of their own")

    @property
    def node_ids(self) -> tuple[str, ...]:
        """Every node id, in order."""
        return tuple(node for step in self.steps for node in step)

    @property
    def current(self) -> Step:
        """The step to do now.

        Raises:
            InputError: if nothing is left.
        """
        if not self.steps:
            raise InputError("the plan is empty: there is no current step")
        return self.steps[0]

    def __len__(self) -> int:
        return len(self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.node_ids

    def without(self, node_ids: Iterable[str]) -> "Plan":
        """The plan after some nodes have left it; steps that become empty vanish."""
        gone = set(node_ids)
        kept = (tuple(node for node in step if node not in gone) for step in self.steps)
        return Plan(tuple(step for step in kept if step))

    def with_first(self, step: Step) -> "Plan":
        """The plan with a step put in front."""
        return Plan((step, *self.steps))


@dataclass(frozen=True, kw_only=True)
class RecipeStep:
    """One node of a recipe's graph.

    Attributes:
        id: unique in the recipe.
        text: what to do, imperative: "Add the noodles to the bowl".
        after: ids of the nodes that must be done before.
        instruction: the sentence in which the coach asks for it; None for the recipe's own phrasing.
    """

    id: str
    text: str
    after: tuple[str, ...] = ()
    instruction: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Steps and their graph: a directed acyclic graph; a plain list is a chain.

    Attributes:
        name: the dish, or whatever the task makes.
        steps: nodes, in the order in which they are listed.
        domain: chooses the prompt's wording; a key of the model's dialogue templates.
    """

    name: str
    steps: tuple[RecipeStep, ...]
    domain: str = "cooking"
    _by_id: Mapping[str, RecipeStep] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_text(self.name, what=f"recipe name {self.name!r}")
        if not self.steps:
            raise InputError(f"recipe {self.name!r} has no steps; list at least one under 'steps'")
        ids = Counter(step.id for step in self.steps)
        twice = [node for node, count in ids.items() if count > 1]
        if twice:
            raise InputError(f"recipe {self.name!r} has step id {twice[0]!r} {ids[twice[0]]} times; ids are unique")
        for step in self.steps:
            if not step.id or not step.text.strip():
                raise InputError(f"recipe {self.name!r} has a step {step.id!r} with an empty id or text; give both")
            for text in (step.id, step.text, step.instruction or ""):
                check_text(text, what=f"recipe {self.name!r}: step {step.id!r}")
            for before in step.after:
                if before not in ids:
                    raise InputError(
                        f"recipe {self.name!r}: step {step.id!r} comes after {before!r}, which is no step of it; "
                        f"its steps are {listed(ids)}"
                    )
        object.__setattr__(self, "_by_id", {step.id: step for step in self.steps})
        if not nx.is_directed_acyclic_graph(self.graph):
            loop = [edge[0] for edge in nx.find_cycle(self.graph)]
            raise InputError(
                f"recipe {self.name!r} goes in a circle ({' -> '.join([*loop, loop[0]])}); "
                "remove one 'after' of these steps"
            )

    @cached_property
    def graph(self) -> Any:
        """The networkx DiGraph, edges from what is done before to what comes after."""
        graph = nx.DiGraph()
        graph.add_nodes_from(step.id for step in self.steps)
        graph.add_edges_from((before, step.id) for step in self.steps for before in step.after)
        return graph

    def __getitem__(self, node_id: str) -> RecipeStep:
        try:
            return self._by_id[node_id]
        except KeyError:
            raise InputError(f"recipe {self.name!r} has no step {node_id!r}; it has {listed(self._by_id)}") from None

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._by_id

    def ancestors(self, node_id: str) -> frozenset[str]:
        """Every node that must be done before this one, directly or not."""
        return frozenset(nx.ancestors(self.graph, self[node_id].id))

    def descendants(self, node_id: str) -> frozenset[str]:
        """Every node that depends on this one, directly or not."""
        return frozenset(nx.descendants(self.graph, self[node_id].id))

    @cached_property
    def plan(self) -> Plan:
        """All steps, one node each, in the graph's order; where it leaves a choice, as listed."""
        place = {step.id: index for index, step in enumerate(self.steps)}
        return Plan(tuple((node,) for node in nx.lexicographical_topological_sort(self.graph, key=place.__getitem__)))

    def text(self, step: Step) -> str:
        """What to do in a step, its actions joined: "Peel the onion and chop the garlic"."""
        return joined([self[node].text for node in step])

    def instruction(self, step: Step) -> str:
        """The coach's sentence for a step: the recipe's own where it gives one, else "Now ..."."""
        own = self[step[0]].instruction if len(step) == 1 else None
        return own or instruction_text([self[node].text for node in step])


# --- reading -----------------------------------------------------------------------------------------


def load_recipe(path: str | Path) -> Recipe:
    """A recipe from our YAML or from a CaptainCook4D task graph (JSON).

    YAML: `name`, optional `domain`, and `steps`, a list of texts (a chain) or of mappings with `text`
    and optional `id`, `after` (ids), `instruction`. Once one step says `after`, all steps mean it: those
    without one can be done at any time.

    Raises:
        MissingError: if there is no such file.
        InputError: if it isn't a recipe: no steps, a cycle, an unknown step, an unknown key.
    """
    path = Path(path)
    if path.suffix.lower() == ".json":
        return _from_task_graph(path)
    data = read_yaml(path, what="recipe")
    return recipe_from_dict(data, where=str(path))


_RECIPE_KEYS = ("name", "domain", "steps")
_STEP_KEYS = ("id", "text", "after", "instruction")


def recipe_from_dict(data: Any, *, where: str) -> Recipe:
    """A recipe from the mapping that our YAML holds.

    Args:
        data: see `load_recipe`.
        where: named in errors: a file, an upload.

    Raises:
        InputError: as `load_recipe`.
    """
    if not isinstance(data, dict):
        raise InputError(f"{where}: a recipe is a mapping with name and steps, not a {type(data).__name__}")
    _check_keys(data, _RECIPE_KEYS, where)
    listed = data.get("steps")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where}: the recipe has no steps; list at least one under 'steps'")
    raw = [_raw_step(step, number, where) for number, step in enumerate(listed, 1)]
    if not any("after" in step for step in raw):
        for before, step in itertools.pairwise(raw):
            step["after"] = [before["id"]]
    steps = tuple(RecipeStep(**{**step, "after": tuple(step.get("after", ()))}) for step in raw)
    name = data.get("name", Path(where).stem)
    domain = data.get("domain", "cooking")
    if not isinstance(name, str) or not isinstance(domain, str):
        raise InputError(f"{where}: name {name!r} and domain {domain!r} must be texts")
    try:
        return Recipe(name=name, steps=steps, domain=domain)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _raw_step(step: Any, number: int, where: str) -> dict[str, Any]:
    if isinstance(step, str):
        step = {"text": step}
    if not isinstance(step, dict):
        raise InputError(f"{where}: step {number} is a {type(step).__name__}; write a text or a mapping with 'text'")
    _check_keys(step, _STEP_KEYS, f"{where}: step {number}")
    own_id = step.get("id")
    raw = {"id": str(number if own_id is None else own_id), "text": step.get("text")}
    if not isinstance(raw["text"], str) or not raw["text"].strip():
        raise InputError(f"{where}: step {number} has no text; say what to do")
    raw["text"] = raw["text"].strip()
    if "after" in step:
        after = step["after"] if isinstance(step["after"], list) else [step["after"]]
        raw["after"] = [str(before) for before in after if before is not None]
    if step.get("instruction") is not None:
        if not isinstance(step["instruction"], str) or not step["instruction"].strip():
            raise InputError(f"{where}: step {number} has instruction {step['instruction']!r}; give a sentence")
        raw["instruction"] = step["instruction"].strip()
    return raw


def _check_keys(data: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    for key in data:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(known)}")


def _from_task_graph(path: Path) -> Recipe:
    data = read_json(path, what="recipe or task graph")
    if not isinstance(data, dict) or not isinstance(data.get("steps"), dict) or not isinstance(data.get("edges"), list):
        raise InputError(f"{path}: a task graph is a JSON object with 'steps' and 'edges'; for other recipes use YAML")
    try:
        return recipe_from_task_graph(data, name=path.stem)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def recipe_from_task_graph(data: Mapping[str, Any], *, name: str) -> Recipe:
    """A recipe from CaptainCook4D's own graph: START and END are dropped, node ids are the file's own.

    Args:
        data: `steps` (node id -> "Verb-text") and `edges` (pairs of node ids, before and after).
        name: the recipe's name; the file carries none.

    Raises:
        InputError: if an edge names an unknown node, or the graph is no recipe.
    """
    descriptions = {str(node): text for node, text in data["steps"].items()}
    for node, text in descriptions.items():
        if not isinstance(text, str) or not text.strip(" -."):
            raise InputError(f'step {node!r} is {text!r}; a step is a text, "Verb-what to do"')
    real = {node: text for node, text in descriptions.items() if text not in ("START", "END")}
    after: dict[str, list[str]] = {node: [] for node in real}
    for edge in data["edges"]:
        if not isinstance(edge, list | tuple) or len(edge) != 2:
            raise InputError(f"edge {edge!r} is not a pair of node ids")
        first, second = map(str, edge)
        for node in (first, second):
            if node not in descriptions:
                raise InputError(f"edge {edge!r} names node {node!r}, which is no step of it")
        if first in real and second in real:
            after[second].append(first)
    steps = tuple(RecipeStep(id=node, text=action_text(text), after=tuple(after[node])) for node, text in real.items())
    return Recipe(name=name, steps=steps)
