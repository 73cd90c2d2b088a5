"""What values are called in sentences: by the names that the program gives them."""

from __future__ import annotations

from ckptcli.planning.tape.cost_graph import CostGraph, NameValue


def value_names(graph: CostGraph) -> dict[int, str]:
    """Of each node its name with the layer, `p of layer 3`, or its op and number, `matmul 12`.

    Where layers are in several loops it has the loop too, counted from 0.
    """
    given = {a.node_id: a.name for a in graph.forward if isinstance(a, NameValue)}
    names: dict[int, str] = {}
    for node, place in zip(graph.nodes, graph.layers):
        where = "" if place is None else f" of layer {place[1]}"
        if place is not None and len(graph.loops) > 1:
            where += f" in loop {place[0]}"
        if node.id in given:
            names[node.id] = f"{given[node.id]}{where}"
        else:
            names[node.id] = f"{node.op or 'leaf'} {node.id}{where}"
    return names
