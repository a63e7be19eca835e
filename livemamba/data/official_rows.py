"""The official rows of Interactive Cooking, and timelines: one is the other, unchanged both ways. No torch.

Schema: spec/interactive_cooking.md ("Official rows") and docs/formats.md. `remaining_plan` holds, for each
message, the plan *before* it (so says the official data card); `Timeline.plans` holds the plan after each.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from livemamba.data.captaincook4d import UNSEEN_SPLIT
from livemamba.errors import InputError, MissingError
from livemamba.recipe import Plan, Recipe, RecipeStep, Step
from livemamba.timeline import MISTAKE_CATEGORIES, Message, MessageKind, MistakeCategory, Timeline

PLAN_SETS = ("main", "advanced_planning")
SPLITS = ("train", "validation", "test")
"""The official ones."""
ALL_SPLITS = (*SPLITS, UNSEEN_SPLIT)
"""With that of simulated corpora."""

_ARRAYS = ("output_texts", "output_timestamps", "output_types", "output_actions", "remaining_plan")
_KEYS = ("video_id", "activity_name", *_ARRAYS)

Row = dict[str, Any]


def rows_file(folder: str | Path, plan_set: str, split: str) -> Path:
    """Where a build keeps a split: `<folder>/<plan_set>/<split>.jsonl`.

    Raises:
        InputError: if the set or the split is none of those that are known.
    """
    for what, value, known in (("plan set", plan_set, PLAN_SETS), ("split", split, ALL_SPLITS)):
        if value not in known:
            raise InputError(f"{what} {value!r} is not one of {', '.join(known)}")
    return Path(folder) / plan_set / f"{split}.jsonl"


def load_rows(folder: str | Path, plan_set: str, split: str) -> list[Timeline]:
    """The timelines of one split of a built folder.

    Args:
        folder: what `livemamba build interactive-cooking` wrote.
        plan_set: "main" or "advanced_planning".
        split: "train", "validation" or "test" (the official loader's "train" is train + validation); in simulated
            corpora also "test_unseen".

    Raises:
        MissingError: if there is no such file.
        InputError: if a line is no official row, with its number.
    """
    return read_rows(rows_file(folder, plan_set, split))


def read_rows(path: str | Path) -> list[Timeline]:
    """The timelines of a file of official rows, one JSON object a line.

    Raises:
        MissingError: if there is no such file.
        InputError: if a line is no official row, with its number, or if a video comes twice.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingError(f"{path} does not exist; make it with `livemamba build interactive-cooking`")
    timelines: list[Timeline] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            timelines.append(timeline_from_row(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{path}: line {number}: not an official row ({error})") from None
    twice = [key for key, count in Counter(timeline.video_id for timeline in timelines).items() if count > 1]
    if twice:
        raise InputError(f"{path}: video {twice[0]} stands in more than one row; keep one")
    return timelines


def write_rows(path: str | Path, timelines: Iterable[Timeline], *, with_graph: bool) -> None:
    """Write official rows, one JSON object a line.

    Args:
        path: the file; its folder is made.
        timelines: see `row_from_timeline`.
        with_graph: also `recipe_graph` and `remaining_plan_w_suffix`, as the Advanced Planning set has.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (row_from_timeline(timeline, with_graph=with_graph) for timeline in timelines)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


# --- Timeline -> row ---------------------------------------------------------------------------------


def row_from_timeline(timeline: Timeline, *, with_graph: bool) -> Row:
    """One video as the official files hold it. Silent advances have no place there and are left out.

    Raises:
        InputError: if a mistake has no category, or a graph is asked for and there is no recipe.
    """
    names = node_names(timeline.recipe) if timeline.recipe else {}
    kept = [index for index, message in enumerate(timeline.messages) if message.kind != "advance"]
    said = [timeline.messages[index] for index in kept]
    # Before the first message the plan is what it is after it: an instruction changes nothing.
    before = [timeline.plans[max(index - 1, 0)] for index in kept] if timeline.plans else []
    texts = {step.id: step.text for step in timeline.recipe.steps} if timeline.recipe else {}
    row: Row = {
        "video_id": timeline.video_id,
        "activity_name": timeline.activity,
        "output_texts": [message.text for message in said],
        "output_timestamps": [message.time_s for message in said],
        "output_types": [_type(message, timeline.video_id) for message in said],
        "output_actions": [_action(message, names) for message in said],
        "remaining_plan": [_named(plan, texts) for plan in before],
    }
    if with_graph:
        if timeline.recipe is None:
            raise InputError(f"{timeline.video_id}: an advanced row holds a recipe graph; this timeline has no recipe")
        row["recipe_graph"] = _graph(timeline.recipe, names)
        row["remaining_plan_w_suffix"] = [_named(plan, names) for plan in before]
    return row


def node_names(recipe: Recipe) -> dict[str, str]:
    """Node id -> what rows call it: the action's text, with `_1`, `_2` where the recipe repeats it."""
    texts = Counter(step.text for step in recipe.steps)
    seen: Counter[str] = Counter()
    names = {}
    for step in recipe.steps:
        seen[step.text] += 1
        names[step.id] = f"{step.text}_{seen[step.text]}" if texts[step.text] > 1 else step.text
    return names


def _type(message: Message, video_id: str) -> str:
    match message.kind:
        case "instruction":
            return "instruction"
        case "finish":
            return "feedback_finish_all"
    follows = "unaligned" if message.kind == "divergence" else "aligned"
    if message.category:
        return f"feedback_action_{follows}_mistake_{message.category}_error"
    if message.kind == "mistake":
        raise InputError(f"{video_id}: the mistake at {message.time_s} s has no category; official rows name one")
    return f"feedback_action_{follows}_success"


def _action(message: Message, names: dict[str, str]) -> str | list[str] | None:
    if message.kind in ("instruction", "finish") or message.actions is None:
        return None
    actions = [names.get(node, node) for node in message.actions]
    return actions[0] if len(actions) == 1 else actions


def _named(plan: Plan, names: dict[str, str]) -> list[list[str]]:
    return [[names.get(node, node) for node in step] for step in plan.steps]


def _graph(recipe: Recipe, names: dict[str, str]) -> Row:
    if not all(step.id.isdecimal() for step in recipe.steps):
        raise InputError(f"recipe {recipe.name!r}: official rows number the nodes; give its steps whole numbers as ids")
    number = {step.id: int(step.id) for step in recipe.steps}
    return {
        "nodes_int_to_str": {step.id: names[step.id] for step in recipe.steps},
        "nodes_str_to_int": {names[step.id]: number[step.id] for step in recipe.steps},
        "edges": [[number[before], number[step.id]] for step in recipe.steps for before in step.after],
        "recipe_text": "\n".join(recipe[node].text for node in recipe.plan.node_ids),
        "action_description_cnt": dict(Counter(step.text for step in recipe.steps)),
    }


# --- row -> Timeline ---------------------------------------------------------------------------------


def timeline_from_row(row: Row) -> Timeline:
    """The inverse of `row_from_timeline`.

    A row without a graph has no node ids: its first plan gives them (in order, "1", "2", ...), and its recipe
    is that plan as a chain. A plan's step may also be a bare text. What `recipe_text` and the counts of a
    graph hold follows from its nodes and is not read.

    Raises:
        InputError: if a key is missing, the arrays differ in length, or a type or plan makes no sense.
    """
    _check_row(row)
    lists = [[_texts_of(step) for step in plan] for plan in row["remaining_plan"] or ()]
    graph = row.get("recipe_graph")
    if graph:
        recipe: Recipe | None = _recipe_of(graph, row["activity_name"])
        lists = [[_texts_of(step) for step in plan] for plan in row["remaining_plan_w_suffix"]]
    else:
        recipe = recipe_from_plan(row["activity_name"], lists[0]) if lists and lists[0] else None
    ids = {name: node for node, name in node_names(recipe).items()} if recipe else {}
    before = [_plan_by_name(plan, ids) for plan in lists] if graph else _plans_by_text(lists, row, recipe, ids)
    messages = tuple(_messages(row, before, ids))
    last = [Plan()] if messages and messages[-1].kind == "finish" else before[-1:]
    return Timeline(
        video_id=row["video_id"],
        activity=row["activity_name"],
        messages=messages,
        plans=tuple(before[1:] + last) if before else (),
        recipe=recipe,
    )


def recipe_from_plan(name: str, steps: Sequence[Sequence[str]]) -> Recipe:
    """A recipe that says no more than a plan does: each step's actions come after those of the step before.

    Args:
        name: the dish.
        steps: each a list of action texts; node ids count them from "1".
    """
    nodes: list[RecipeStep] = []
    before: tuple[str, ...] = ()
    for texts in steps:
        own = tuple(str(len(nodes) + offset) for offset in range(1, len(texts) + 1))
        nodes += [RecipeStep(id=node, text=text, after=before) for node, text in zip(own, texts, strict=True)]
        before = own
    return Recipe(name=name, steps=tuple(nodes))


def _check_row(row: Any) -> None:
    if not isinstance(row, dict):
        raise InputError(f"a row is a JSON object, not a {type(row).__name__}")
    lacking = [key for key in _KEYS if key not in row]
    if row.get("recipe_graph") and "remaining_plan_w_suffix" not in row:
        lacking.append("remaining_plan_w_suffix")
    if lacking:
        raise InputError(f"lacks {', '.join(lacking)}")
    lengths = {key: len(row[key]) for key in (*_ARRAYS, "remaining_plan_w_suffix") if row.get(key)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise InputError(f"{row['video_id']}: parallel arrays differ in length: {listed}")


def _texts_of(step: Any) -> list[str]:
    texts = [step] if isinstance(step, str) else list(step)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f"plan step {step!r} is neither a text nor a list of texts")
    return texts


def _recipe_of(graph: Row, name: str) -> Recipe:
    numbers = {int(number): text for number, text in graph["nodes_int_to_str"].items()}
    repeated = {
        f"{text}_{k}": text for text, n in graph["action_description_cnt"].items() for k in range(1, n + 1) if n > 1
    }
    after: dict[int, list[str]] = defaultdict(list)
    for first, second in graph["edges"]:
        after[int(second)].append(str(first))
    steps = (
        RecipeStep(id=str(number), text=repeated.get(text, text), after=tuple(after[number]))
        for number, text in numbers.items()
    )
    return Recipe(name=name, steps=tuple(steps))


def _plan_by_name(steps: list[list[str]], ids: dict[str, str]) -> Plan:
    unknown = [name for step in steps for name in step if name not in ids]
    if unknown:
        raise InputError(f"plan names {unknown[0]!r}, which the recipe graph doesn't have")
    return Plan(tuple(tuple(ids[name] for name in step) for step in steps))


def _plans_by_text(lists: list[list[list[str]]], row: Row, recipe: Recipe | None, ids: dict[str, str]) -> list[Plan]:
    """Plans that name no nodes, only texts. Of a repeated text, those are left whose feedback hasn't come yet."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for step in recipe.steps if recipe else ():
        nodes[step.text].append(step.id)
    done: set[str] = set()
    plans = []
    for steps, action in zip(lists, _actions(row), strict=bool(lists)):
        plans.append(_plan_by_text(steps, nodes, done))
        done |= {ids[name] for name in _action_names(action) if name in ids}
    return plans


def _plan_by_text(steps: list[list[str]], nodes: dict[str, list[str]], done: set[str]) -> Plan:
    left: dict[str, list[str]] = {}
    for text, count in Counter(text for step in steps for text in step).items():
        if count > len(nodes.get(text, ())):
            raise InputError(f"plan names {text!r} {count} times, the first plan {len(nodes.get(text, ()))} times")
        waiting = [node for node in nodes[text] if node not in done]
        left[text] = (waiting if len(waiting) >= count else nodes[text])[-count:]
    return Plan(tuple(tuple(left[text].pop(0) for text in step) for step in steps))


def _actions(row: Row) -> list[Any]:
    return row["output_actions"] or [None] * len(row["output_texts"])


def _action_names(action: Any) -> list[str]:
    if action is None:
        return []
    return [action] if isinstance(action, str) else list(action)


def _messages(row: Row, before: list[Plan], ids: dict[str, str]) -> Iterable[Message]:
    columns = zip(row["output_timestamps"], row["output_types"], row["output_texts"], _actions(row), strict=True)
    for index, (time_s, kind, text, action) in enumerate(columns):
        actions: Step | None = tuple(ids.get(name, name) for name in _action_names(action)) or None
        if kind == "instruction" and before and before[index]:
            actions = before[index].current
        yield _message(kind, float(time_s), text, actions)


def _message(kind: str, time_s: float, text: str, actions: Step | None) -> Message:
    if kind == "instruction":
        return Message(time_s=time_s, kind="instruction", text=text, actions=actions)
    if kind == "feedback_finish_all":
        return Message(time_s=time_s, kind="finish", text=text)
    for follows in ("aligned", "unaligned"):
        start = f"feedback_action_{follows}_"
        if not kind.startswith(start):
            continue
        rest = kind.removeprefix(start)
        category = rest.removeprefix("mistake_").removesuffix("_error")
        aligned = follows == "aligned"
        if rest == "success":
            said: MessageKind = "success" if aligned else "divergence"
            return Message(time_s=time_s, kind=said, text=text, aligned=aligned, actions=actions)
        if rest == f"mistake_{category}_error" and category in MISTAKE_CATEGORIES:
            return Message(
                time_s=time_s,
                kind="mistake" if aligned else "divergence",
                text=text,
                aligned=aligned,
                category=cast(MistakeCategory, category),
                actions=actions,
            )
    raise InputError(f"message type {kind!r} is none of the official ones")
