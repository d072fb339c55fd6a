# SPDX-License-Identifier: Apache-2.0
"""Sets of items that grow together."""

from collections.abc import Hashable, Iterable


class DisjointSets:
    """Sets of items that grow together: a union-find structure."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def find(self, item: Hashable) -> Hashable:
        """Return the representative of an item's set; an unknown item is a set of its own."""
        path = [item]
        while (above := self._above.get(path[-1], path[-1])) != path[-1]:
            path.append(above)
        for each in path:
            self._above[each] = path[-1]
        return path[-1]

    def join(self, items: Iterable[Hashable]) -> None:
        """Make one set of the sets of these items."""
        first, *others = map(self.find, items)
        for each in others:
            self._above[each] = first
