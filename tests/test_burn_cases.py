"""Burn's named cases: logs under both strategies, use counts, gradients of the sum of the root.

Sources: Burn 0.22.1, `burn-backend-tests/tests/autodiff/` (checkpoint, complex, mul, matmul,
softmax, gelu, ...); further small programs recorded from its autodiff core.

A program is read from left to right and takes ids from 0. `A!` is a leaf that requires a gradient,
`A` a constant (data in `LEAVES`; a number v is [[v, 7], [7, 7]]), `mul:0,1` an op on nodes 0 and
1, `sum_dim:2;dim=1` one with an argument. A log `4 5:2<0 5>` reads: node 4 was retrieved and held;
then node 5, by way of 0 and itself.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import (
    STRATEGIES,
    backward,
    compact,
    expanded,
    gradient,
    leaf,
    recomputed,
    required,
    watched,
)

LEAVES = {
    "A": [[1, 7], [13, -3]],
    "B": [[4, 7], [2, 3]],
    "C": [[2, 2], [2, 2]],
    "M": [[1, 2], [3, 4]],
    "S": [[0, 1], [3, 4]],
    "T": [[6, 7], [9, 10]],
    "G": [[0, 1], [-3, 4]],
    "H": [[6, -0.5], [9, 10]],
    "W": [[0.1, 0.2], [0.3, 0.4]],
    "V": [[-0.1, 0.2], [-0.3, 0.4]],
    "X": [0.3, 0.7],
    "K": [0.2, 0.1],
    "L": [0.2, 0.9],
    "D": [0.5, -0.25],
    "TWO": [2, 3],
    "ONE": [1.01],
    "P": [0.8762],
    "Q": [-90.0],
    "ROW": [[0.1, 0.2, 0.4]],
    "GAMMA": [1, 2, 3],
    "BETA": [0, 1, 0],
}


@dataclass(frozen=True)
class Case:
    """A program and what it must give. Gradients are by tracked leaf, in order."""

    program: str
    none: str
    balanced: str
    gradients: list[list[float]] = field(default_factory=list)
    rtol: float = 1e-12
    mask_true: list[list[float]] | None = None
    """The gradients when every mask is true; everywhere else it is false."""
    required: dict[int, int] | None = None
    """Use counts under balanced."""
    recomputed: list[int] | None = None


SOFTMAX = "detach:{0} max_dim:{1};dim=1 sub:{0},{2} exp:{3} sum_dim:{4};dim=1"

CASES = {
    "complicated_computation": Case(
        "0! .1! .2! .3! .4! mask_where:0,1 matmul:2,3 add:3,4 matmul:6,7 add_scalar:7;c=11 "
        "mul:5,8 mul:8,9 matmul:10,11",
        "10 11 8 9 5 8 6 7 2 3",
        "10:3<5 8 10> 11:6<8 3 4 7 9 11> 8 9 5 8 6 7 2 3",
        [
            [32164036.6733588, 121670362.87, 61193398.817278, 182395446.45],
            [0, 0, 0, 0],
            [99012337.71023, 180034837.7527, 214438360.882858, 333216293.70442],
            [186130134.19378, 330035081.5034, 338347882.57592, 518216488.9664],
            [59615204.37894, 118189865.1066, 129601161.6732, 213712078.412],
        ],
        required={2: 1, 3: 2, 4: 1, 5: 2, 6: 1, 7: 2, 8: 4, 9: 2, 10: 1, 11: 1},
        recomputed=[10, 7, 9, 11],
    ),
    "missing_requirement": Case(
        "0! .1 add:0,1 add_scalar:2;c=11 add_scalar:2;c=11 matmul:3,4 mask_fill:5;c=11 add:5,2 "
        "add:6,7",
        "3 4",
        "3:2<2 3> 4:2<2 4>",
        [[145.4, 173.2, 173.2, 201]],
        mask_true=[[73.2, 87.1, 87.1, 101]],
        required={2: 2, 3: 1, 4: 1},
    ),
    "many_duplicates": Case(
        "4! add:0,0 mask_where:0,0 mul:0,0 matmul:0,0 add:1,0 add:0,5 matmul:3,5 mask_where:4,2 "
        "mul:6,7 add:0,9 add_scalar:10;c=9 matmul:8,11",
        "8 11 6 7 3 5 0 0 0 0",
        "8 11:8<0 1 5 6 7 9 10 11> 6 7 3:2<0 3> 5 0 0 0 0",
        [[3996405, 5780793, 6210813, 8192814]],
        mask_true=[[246232, 377707, 412951, 551590]],
        required={0: 11, 1: 1, 3: 1, 5: 2, 6: 2, 7: 2, 8: 1, 9: 1, 10: 1, 11: 1},
    ),
    "long_chain_of_eager_memory_bound": Case(
        "0! .1 .2! .3! .4! add:0,1 add:5,2 add:6,3 add:7,4 mul:8,1", "1", "1", [[0.1, 7, 7, 7]] * 4
    ),
    "half_sub_graph_not_tracked": Case(
        "0 .1 .2 .3! .4! .5! mul:0,1 mask_where:6,2 add:3,4 matmul:8,5 matmul:7,9",
        "7 8 5",
        "7 8:3<3 4 8> 5",
        [[367.5, 686, 735, 1372], [367.5, 686, 735, 1372], [1406.3, 1406.3, 2058, 2058]],
        mask_true=[[54, 100.8, 105, 196], [54, 100.8, 105, 196], [201.04, 201.04, 296.8, 296.8]],
    ),
    "very_complex": Case(
        "0! .1 .2! .3! .4! add_scalar:0;c=8 mul:5,1 matmul:6,6 mul:1,5 add_scalar:7;c=7 "
        "mask_where:5,8 add:2,9 mul:2,2 mask_where:10,11 mask_fill:3;c=8 matmul:4,12 mul:10,7 "
        "matmul:13,1 add:15,16 mask_where:14,17 mul:18,19 add_scalar:20;c=8",
        "18 19 1 10 7 6 6 1 1 4 12 2 2",
        "18:5<15 10 7 16 18> 19 1 10 7 6 6 1 1 4 12:2<2 12> 2 2",
        [
            [5513.076, 234465, 234465, 463050],
            [19.648, 725.2, 715.4, 1372],
            [88548.136, 166997.6, 166978.28, 331436],
            [343.012, 357.7, 343.28, 686],
        ],
        required={1: 3, 2: 4, 4: 1, 6: 2, 7: 2, 10: 2, 12: 1, 15: 1, 16: 1, 18: 1, 19: 1},
    ),
    "full_complex_1": Case(
        "A! B! matmul:0,1 matmul:2,0 mul:3,1",
        "3 1 2 0 0 1",
        "3 1 2 0 0 1",
        [[593, 463, 487, 539], [734, 294, 1414, 242]],
    ),
    "full_complex_2": Case(
        "A! B! matmul:0,1 matmul:2,0 add_scalar:3;c=17 add:4,1",
        "2 0 0 1",
        "2 0 0 1",
        [[166, 110, 212, 156], [113, 141, 33, 41]],
    ),
    "full_complex_3": Case(
        "A! B! matmul:0,1 matmul:2,0 sub:3,1 add:4,3",
        "2 0 0 1",
        "2 0 0 1",
        [[332, 220, 424, 312], [223, 279, 63, 79]],
    ),
    "mul_complex_1": Case(
        "A! B! C! mul:0,1 mul:3,2 mul:0,4",
        "0 4 3 2 0 1",
        "0 4:5<0 1 3 2 4> 3 2 0 1",
        [[16, 196, 104, -36], [2, 98, 338, 18]],
    ),
    "matmul_complex_1": Case(
        "A! B! C! matmul:0,1 matmul:3,2",
        "3 2 0 1",
        "3 2 0 1",
        [[44, 20, 44, 20], [56, 56, 16, 16]],
    ),
    "matmul_complex_2": Case(
        "A! B! C! matmul:0,1 matmul:3,2 matmul:0,4",
        "0 4 3 2 0 1",
        "0 4 3 2 0 1",
        [[800, 792, 360, 592], [264, 264, 344, 344]],
    ),
    "mm_self_referencing": Case(
        "M! M! M! mul:0,1 mul:2,3 mul:3,4",
        "3 4 2 3 0 1",
        "3:3<0 1 3> 4:3<2 3 4> 2 3 0 1",
        [[2, 32, 162, 512], [2, 32, 162, 512], [1, 16, 81, 256]],
    ),
    "sum_2": Case(
        "S! T! matmul:0,1 sum_dim:2;dim=1 mul:3,2 sum:4",
        "3 2 0 1",
        "3 2 0 1",
        [[494, 722, 2990, 4370], [690, 690, 958, 958]],
    ),
    "sigmoid": Case("P! sigmoid:0", "0", "0", [[0.207549]], rtol=1e-5),
    "sigmoid_saturated": Case("Q! sigmoid:0", "0", "0", [[math.exp(-90)]]),
    "softmax_grad": Case(
        f"S! T! matmul:0,1 {SOFTMAX.format(*range(2, 7))} div:6,7 matmul:8,1",
        "8 1 6 7 5 0 1",
        "8:4<5 6 7 8> 1 6 7 5 0 1",
        [[1.179665, 1.179661, 0.005462, 0.005463], [0.253469, 0.286237, 0.528630, 2.931664]],
        rtol=5e-4,  # as loose as upstream's own figures
    ),
    "log_softmax_grad": Case(
        f"S! T! matmul:0,1 {SOFTMAX.format(*range(2, 7))} log:7 sub:5,8 matmul:9,1",
        "9 1 7 5 0 1",
        "9:4<5 7 8 9> 1 7 5 0 1",
        [[-4.3939, -4.3939, -12.9709, -12.9709], [30.5984, -47.2267, 55.9631, -56.5914]],
        rtol=1e-5,
    ),
    "gelu": Case(
        "G! H! gelu:1 matmul:0,2 matmul:0,3",
        "0 3 0 2 1",
        "0 3 0 2:2<1 2> 1",
        [[1.46281, 1.46281, 48.22866, 153.46280], [-15.0, -1.98757, 17, 17]],
        rtol=1e-5,
    ),
    "diamond": Case(
        "D! exp:0 sin:0 mul:1,2 sum:3",
        "1 2 0 0",
        "1:2<0 1> 2:2<0 2> 0 0",
        [[2.2373281197977843, 0.5619113555534729]],
        required={0: 4, 1: 1, 2: 1},
    ),
    "branchy": Case(
        "X! exp:0 sin:1 cos:1 mul:2,3 add:4,1 mul:5,2 sum:6",
        "5 2 2 3 1 1 0",
        "5:6<0 1 2 3 4 5> 2 2 3 1 1 0",
        [[0.5890579643262795, -0.7353894747708164]],
    ),
    "multi_equal_depth": Case(
        "X! L! sin:0 sin:1 cos:0 mul:2,3 mul:4,5 mul:5,4 add:6,7 sum:8",
        "5 4 4 5 2 3 0 1 0",
        "5:5<0 2 1 3 5> 4:2<0 4> 4 5 2 3 0 1 0",
        [[0.32793774859087227, 0.2662796735725175], [0.5533872166040865, 0.6125653753904615]],
    ),
    "square_chain4": Case(
        "ONE! mul:0,0 mul:1,1 mul:2,2 mul:3,3",
        "3 3 2 2 1 1 0 0",
        "3:4<0 1 2 3> 3 2 2 1 1 0 0",
        [[18.57550328591998]],
    ),
    "const_order2": Case(
        "X! K exp:1 exp:2 exp:3 exp:0 mul:5,4 sin:5 add:6,7 sum:8",
        "4 5 0",
        "4 5:2<0 5> 0",
        [[40.41852265234852, 40.39057021075725]],
    ),
    "const_mid": Case(
        "X! K exp:0 mul:2,1 sin:3 mul:4,3 sum:5",
        "4 3 3 1 0",
        "4:2<3 4> 3 3 1 0",
        [[0.1422473601162519, 0.08001101957924378]],
    ),
    "divs": Case(
        "X! exp:0 div:0,1 TWO div:2,3 TWO div:5,4 sum:6",
        "5 4 3 0 1 0",
        "5 4 3 0 1:2<0 1> 0",
        [[-41.99560734680898, -11.096188388102629]],
    ),
    "detach": Case(
        "X! exp:0 detach:1 mul:1,2 sum:3",
        "2 0",
        "2 0",
        [[1.822118800390509, 4.055199966844675]],
    ),
    "silu2": Case(
        "W! V! M matmul:2,0 sigmoid:3 mul:3,4 matmul:5,1 sigmoid:6 mul:6,7 sum:8",
        "6 7 6 5 1 3 4 3 2",
        "6 7:2<6 7> 6 5:3<3 4 5> 1 3 4 3 2",
        [
            [0.6164079741408123, 1.2215422858743417, 0.8772137394269514, 1.730622613738027],
            [0.3809416537679167, 1.4732351954271103, 0.6062515222270829, 2.3625064295386218],
        ],
    ),
    # The detached maximum of an op's output is a constant: the shifted output is held. That of a
    # leaf is tracked: it is not.
    "softmax_of_leaf": Case(
        f"ROW! {SOFTMAX.format(*range(5))} div:4,5 mul:6,6 sum:7",
        "6 6 4 5 3",
        "6:6<0 2 3 4 5 6> 6 4 5 3",
    ),
    "softmax_of_output": Case(
        f"ROW! mul_scalar:0;c=1.5 {SOFTMAX.format(*range(1, 6))} div:5,6 mul:7,7 sum:8",
        "7 7 5 6 4",
        "7:4<4 5 6 7> 7 5 6 4",
    ),
    # Inputs, mean and variance alone are held.
    "layer_norm": Case(
        "ROW! mul_scalar:0;c=1.5 GAMMA! BETA! mean_dim:1;dim=1 sub:1,4 mul:5,5 mean_dim:6;dim=1 "
        "add_scalar:7;c=1e-5 sqrt:8 div:5,9 reshape:2;shape=[1,3] mul:10,11 "
        "reshape:3;shape=[1,3] add:12,13 mul:14,14 sum:15",
        "14 14 10 11 5 9 8 5 5",
        "14:14<0 1 4 5 7 8 9 10 2 11 12 3 13 14> 14 10 11 5 9 8 5 5",
    ),
}


def run(dev: Device, program: str, mask: bool) -> list[Tensor]:
    """The tensors of a program; the index of each is its node id."""
    nodes: list[Tensor] = []
    for word in program.split():
        call = re.fullmatch(r"(\w+):([\d,]+)(?:;(\w+)=(\S+))?", word)
        if call is None:
            name = word.rstrip("!")
            data = LEAVES.get(name) or [[float(name), 7], [7, 7]]
            nodes.append(leaf(dev, data, tracked=word != name))
            continue
        operands: list[Any] = [nodes[int(i)] for i in call[2].split(",")]
        arguments = {call[3]: json.loads(call[4])} if call[3] else {}
        if call[1].startswith("mask"):
            operands.insert(1, np.full((2, 2), mask))
        nodes.append(OPERATIONS[call[1]](*operands, **arguments))
    assert [node.node.id for node in nodes] == list(range(len(nodes)))
    return nodes


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, strategy: str) -> None:
    case = CASES[name]
    for mask, expected in ((False, case.gradients), (True, case.mask_true)):
        if expected is None:
            continue
        dev, recorder = watched(strategy)
        nodes = run(dev, case.program, mask)
        leaves = [node for node in nodes if node.node.order == 0 and node.is_tracked]
        gradients = backward(nodes[-1])
        assert compact(recorder.events) == expanded(getattr(case, strategy))
        for tensor, values in zip(leaves, expected):
            actual = gradient(gradients, tensor).ravel()
            np.testing.assert_allclose(actual, values, rtol=case.rtol)
        if strategy == "balanced" and case.required:
            assert required(recorder.events) == case.required
        if strategy == "balanced" and case.recomputed:
            assert recomputed(recorder.events) == case.recomputed
        if strategy == "none":
            assert recomputed(recorder.events) == []


def test_eight_silu_layers_hold_23_intermediates_or_8_and_recompute_15() -> None:
    held, again = {}, {}
    for strategy in STRATEGIES:
        dev, recorder = watched(strategy)
        backward(SiluWorkload(layers=8, n=4).load(dev).forward().root)
        again[strategy] = recomputed(recorder.events)
        intermediates = {i for i in required(recorder.events) if i > 8}
        held[strategy] = len(intermediates.difference(again[strategy]))
    assert held == {"none": 23, "balanced": 8}
    assert len(again["balanced"]) == len(set(again["balanced"])) == 15
