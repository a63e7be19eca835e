"""An encoded sample as a table that a person can check, one row for each position. No torch."""

from collections.abc import Iterator

from livemamba.dialogue.encode import IGNORE, Encoded, Part
from livemamba.dialogue.tokens import Tokens
from livemamba.ticks import tick_to_s


def position_rows(encoded: Encoded, tokens: Tokens, *, num_queries: int) -> Iterator[tuple[str, ...]]:
    """Header and rows: position, time, part, token, target, and whether it is a decision.

    Positions that only repeat (a frame's inner embeddings) are shown too: nothing is left out.
    """
    yield ("position", "time", "part", "token", "then", "")
    seen_visual = 0
    for place in range(len(encoded)):
        part = Part(encoded.parts[place])
        time = ""
        token = tokens.name(int(encoded.ids[place]))
        if part == Part.VISUAL:
            frame, query = divmod(seen_visual, num_queries)
            seen_visual += 1
            token = f"[{query + 1}/{num_queries}]"
            time = f"{tick_to_s(int(encoded.ticks[frame])):.1f} s" if query == 0 else ""
        target = int(encoded.targets[place])
        yield (
            str(place),
            time,
            part.name.lower(),
            token,
            "" if target == IGNORE else tokens.name(target),
            "decision" if encoded.decisions[place] else "",
        )


def position_table(encoded: Encoded, tokens: Tokens, *, num_queries: int) -> str:
    """The rows of `position_rows` as aligned text, with the counts that matter below."""
    rows = list(position_rows(encoded, tokens, num_queries=num_queries))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    decisions = encoded.targets[encoded.decisions]
    respond = int((decisions == tokens.config.response_id).sum())
    silent = int((decisions == tokens.config.vision_id).sum())
    supervised = int((encoded.targets != IGNORE).sum())
    lines.append("")
    lines.append(
        f"{len(encoded)} positions, {len(encoded.ticks)} frames; decisions: {respond} respond, {silent} silent, "
        f"{len(decisions) - respond - silent} without target; {supervised} positions carry a target"
    )
    return "\n".join(lines)
