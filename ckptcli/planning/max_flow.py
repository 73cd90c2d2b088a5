"""Max-flow and min-cut after Dinic, with capacities that are integers or fractions of any size.

Flows in libraries want capacities of 32 bits, which bytes above 2 GiB overflow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptcli.planning.problems.base import Number


@dataclass(slots=True)
class Network:
    """Directed arcs with capacities; None is without limit. Arc 2k + 1 is arc 2k backwards.

    Attributes:
        arcs: of each vertex, the numbers of the arcs that leave it.
        heads: where each arc leads.
        left: what each arc can still take.
    """

    arcs: list[list[int]] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    left: list[Number | None] = field(default_factory=list)

    def vertex(self) -> int:
        """A new vertex."""
        self.arcs.append([])
        return len(self.arcs) - 1

    def arc(self, tail: int, head: int, capacity: Number | None) -> None:
        """A new arc."""
        for here, there, room in ((tail, head, capacity), (head, tail, 0)):
            self.arcs[here].append(len(self.heads))
            self.heads.append(there)
            self.left.append(room)

    def saturate(self, source: int, sink: int) -> None:
        """Send as much as fits. There must be a cut of finite capacity."""
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return
            following = [0] * len(self.arcs)
            while path := self._path(source, sink, levels, following):
                self._send(path)

    def source_side(self, sink: int) -> list[bool]:
        """After `saturate`: which vertices are before the least cut that is nearest to the sink."""
        leads = [False] * len(self.arcs)
        leads[sink] = True
        queue = [sink]
        for vertex in queue:
            for arc in self.arcs[vertex]:
                tail = self.heads[arc]
                if not leads[tail] and self.left[arc ^ 1] != 0:
                    leads[tail] = True
                    queue.append(tail)
        return [not each for each in leads]

    def _levels(self, source: int) -> list[int]:
        levels = [-1] * len(self.arcs)
        levels[source] = 0
        queue = [source]
        for vertex in queue:
            for arc in self.arcs[vertex]:
                head = self.heads[arc]
                if levels[head] < 0 and self.left[arc] != 0:
                    levels[head] = levels[vertex] + 1
                    queue.append(head)
        return levels

    def _path(self, source: int, sink: int, levels: list[int], following: list[int]) -> list[int]:
        """The arcs of one more path that goes a level further with each; [] without one."""
        path: list[int] = []
        vertex = source
        while vertex != sink:
            arcs = self.arcs[vertex]
            while following[vertex] < len(arcs):
                arc = arcs[following[vertex]]
                head = self.heads[arc]
                if self.left[arc] != 0 and levels[head] == levels[vertex] + 1:
                    break
                following[vertex] += 1
            else:
                if not path:
                    return []
                vertex = self.heads[path.pop() ^ 1]
                following[vertex] += 1
                continue
            path.append(arc)
            vertex = head
        return path

    def _send(self, path: list[int]) -> None:
        rooms = [room for arc in path if (room := self.left[arc]) is not None]
        least = min(rooms)
        for arc in path:
            room, back = self.left[arc], self.left[arc ^ 1]
            if room is not None:
                self.left[arc] = room - least
            if back is not None:
                self.left[arc ^ 1] = back + least
