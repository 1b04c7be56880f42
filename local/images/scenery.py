"""Where the houses of the local world stand.

One rule for everybody: squares on a fixed world grid. The producer paints them into its imagery, prepare-imagery
offers them as building footprints, so that training and inference find something where a building should be.
"""

import math
from dataclasses import dataclass

SPACING_METRES = 60.0
SIDE_METRES = 15.0
METRES_PER_DEGREE = 111_320.0
MAX_BUILDINGS = 20_000

Bounds = tuple[float, float, float, float]  # left, bottom, right, top in units of the raster's CRS
Ring = list[tuple[float, float]]


@dataclass(frozen=True)
class Building:
    """One square house; ``column`` and ``row`` are its place on the world grid."""

    column: int
    row: int
    bounds: Bounds

    @property
    def is_damaged(self) -> bool:
        """Every third house is damaged by the event."""
        return (self.column + self.row) % 3 == 0

    @property
    def ring(self) -> Ring:
        """Closed outer ring, counter-clockwise."""
        return square_ring(self.bounds)


def square_ring(bounds: Bounds) -> Ring:
    """Closed counter-clockwise ring around ``bounds``."""
    left, bottom, right, top = bounds
    return [(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)]


def buildings_within(bounds: Bounds, *, is_geographic: bool) -> list[Building]:
    """The houses that lie wholly inside ``bounds``, at most MAX_BUILDINGS, row by row from the south."""
    units_per_metre = 1 / METRES_PER_DEGREE if is_geographic else 1.0
    spacing, side = SPACING_METRES * units_per_metre, SIDE_METRES * units_per_metre
    left, bottom, right, top = bounds
    found: list[Building] = []
    for row in range(math.ceil(bottom / spacing), math.floor((top - side) / spacing) + 1):
        for column in range(math.ceil(left / spacing), math.floor((right - side) / spacing) + 1):
            if len(found) == MAX_BUILDINGS:
                return found
            x, y = column * spacing, row * spacing
            found.append(Building(column, row, (x, y, x + side, y + side)))
    return found
