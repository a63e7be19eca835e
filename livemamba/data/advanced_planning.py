"""The Advanced Planning set: what was done, found in the recipe's graph, and the plan it is held against.

No torch. Source: paper B.2; spec/interactive_cooking.md, "Building the Advanced Planning set".
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import networkx as nx

from livemamba.data.captaincook4d import Action, Annotations, Recording, TaskGraph
from livemamba.data.notes import Notes
from livemamba.data.playing import BuiltVideo, Group, MistakeTime, play
from livemamba.recipe import Plan, Recipe, Step


def build_advanced(
    recording: Recording,
    groups: Sequence[Sequence[Action]],
    annotations: Annotations,
    mistake_time: MistakeTime,
    notes: Notes,
) -> BuiltVideo | None:
    """A video of the Advanced Planning set: the plan is the recipe's graph, sorted near what was done.

    Args:
        recording: the video.
        groups: its performed actions, grouped as in the Main set.
        annotations: for the graph and the texts of step ids.
        mistake_time: see `play`.
        notes: takes the reason where the video is discarded.

    Returns:
        None if the video is discarded: something was done that the graph doesn't have.
    """
    graph = annotations.graphs[recording.activity]
    done = match_nodes(recording.id, groups, graph, annotations.step_texts, notes)
    if done is None:
        return None
    return play(recording, graph.recipe, advanced_plan(graph.recipe, done), done, mistake_time, notes)


def in_test_split(video: BuiltVideo, notes: Notes) -> bool:
    """Whether the test split takes a video: no compound groups, and at least one unaligned action."""
    if video.has_compound_groups:
        notes.add("left out of test: compound groups", video.timeline.video_id)
        return False
    if not video.timeline.of_kind("divergence"):
        notes.add("left out of test: every action follows its instruction", video.timeline.video_id)
        return False
    return True


def match_nodes(
    video_id: str,
    groups: Iterable[Sequence[Action]],
    graph: TaskGraph,
    step_texts: Mapping[int, str],
    notes: Notes,
) -> list[Group] | None:
    """The graph's node for each action, by description; if absent, by the text of its step id.

    The k-th time a text is done is the k-th node with that text, by depth from START.

    Returns:
        None if a text is unknown or done more often than there are nodes (noted).
    """
    nodes = _nodes_by_text(graph)
    seen: Counter[str] = Counter()
    matched: list[Group] = []
    for group in groups:
        done = []
        for action in group:
            place = f"{video_id} step {action.place}"
            text = action.description
            if text not in nodes:
                text = step_texts.get(action.step_id, text)
                if text in nodes:
                    notes.add("found by step id: the graph words it differently", place)
            if seen[text] == len(nodes.get(text, ())):
                reason = "done more often than in the graph" if text in nodes else "not in the graph"
                notes.add(f"discarded: an action is {reason}", place)
                return None
            done.append((nodes[text][seen[text]], action))
            seen[text] += 1
        matched.append(tuple(done))
    return matched


def _nodes_by_text(graph: TaskGraph) -> dict[str, list[str]]:
    depth: dict[str, int] = {}
    for node in nx.topological_sort(graph.recipe.graph):
        depth[node] = 1 + max((depth[before] for before in graph.recipe[node].after), default=0)
    nodes: dict[str, list[str]] = defaultdict(list)
    for step in sorted(graph.recipe.steps, key=lambda step: depth[step.id]):  # stable: equal depths as listed
        nodes[graph.descriptions[step.id]].append(step.id)
    return nodes


def advanced_plan(recipe: Recipe, done: Sequence[Group]) -> Plan:
    """The recipe in an order that its graph allows, as near to what was done as that goes.

    Nodes never done come last. The order is swept left to right, over and over; a node is taken once all
    before it are (Kahn's algorithm; with a queue, first or last in, first out, the paper's counts don't come
    out). Neighbours become one step only where just those were done in parallel.
    """
    executed = [node for group in done for node, _ in group]
    waiting = executed + [step.id for step in recipe.steps if step.id not in executed]
    order: dict[str, None] = {}
    while waiting:
        for node in waiting:
            if all(before in order for before in recipe[node].after):
                order[node] = None
        waiting = [node for node in waiting if node not in order]
    parallel = [{node for node, _ in group} for group in done if len(group) > 1]
    return Plan(tuple(_merged(list(order), parallel)))


def _merged(order: list[str], parallel: list[set[str]]) -> Iterable[Step]:
    place = 0
    while place < len(order):
        size = next((len(group) for group in parallel if set(order[place : place + len(group)]) == group), 1)
        yield tuple(order[place : place + size])
        place += size
