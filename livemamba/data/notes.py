"""What couldn't be used or had to be mended: counted and named, never dropped in silence. No torch."""

from typing import Any


class Notes:
    """Reasons, each with the places it was met, in the order in which they were met."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def add(self, reason: str, place: str) -> None:
        """Count one more place for a reason."""
        self._places.setdefault(reason, []).append(place)

    def places(self, reason: str) -> tuple[str, ...]:
        """Where a reason was met; empty if nowhere."""
        return tuple(self._places.get(reason, ()))

    @property
    def counts(self) -> dict[str, int]:
        """Reason -> how often, by reason."""
        return {reason: len(self._places[reason]) for reason in sorted(self._places)}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: reason -> count and places."""
        return {
            reason: {"count": len(self._places[reason]), "places": self._places[reason]}
            for reason in sorted(self._places)
        }
