"""The programs on which `test_gradients` and `test_strict_backend` run every op.

An op of the table without a case fails `test_every_op_has_a_case`.
"""

from __future__ import annotations

import numpy as np

from ckptcli import cat
from ckptcli.autodiff.functions import silu
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.autodiff.ops.cast import cast_always
from ckptcli.autodiff.ops.extremes import max_dim
from ckptcli.autodiff.ops.reduction import mean_dim, sum_dim
from tests.case_kit import REDUCED, SHAPES, Case, alone, each_dim, every_third, pairs
from tests.module_cases import MODULE_CASES

WITHOUT_DERIVATIVE = {"detach"}
CASES: dict[str, list[Case]] = {
    "add": pairs(lambda a, b: a + b),
    "sub": pairs(lambda a, b: a - b),
    "mul": pairs(lambda a, b: a * b),
    "div": pairs(lambda a, b: a / b),
    "add_scalar": [*alone(lambda x: x + 1.5), *alone(lambda x: 1.5 + x)],
    "sub_scalar": [*alone(lambda x: x - 1.5), *alone(lambda x: 1.5 - x)],
    "mul_scalar": [*alone(lambda x: x * -0.7), *alone(lambda x: -0.7 * x)],
    "div_scalar": [*alone(lambda x: x / -0.7), *alone(lambda x: -0.7 / x)],
    "neg": alone(lambda x: -x),
    "recip": alone(lambda x: x.recip()),
    "powf_scalar": [
        *(case for e in (-2, -1, 1, 2, 3) for case in alone(lambda x, e=e: x**e)),
        *(case for e in (-0.5, 0.5, 2.5) for case in alone(lambda x, e=e: x**e, positive=True)),
    ],
    "exp": alone(lambda x: x.exp()),
    "log": alone(lambda x: x.log(), positive=True),
    "log1p": alone(lambda x: x.log1p(), positive=True),
    "sqrt": alone(lambda x: x.sqrt(), positive=True),
    "abs": alone(lambda x: x.abs()),
    "sin": alone(lambda x: x.sin()),
    "cos": alone(lambda x: x.cos()),
    "tanh": alone(lambda x: x.tanh()),
    "relu": alone(lambda x: x.relu()),
    "sigmoid": alone(lambda x: x.sigmoid()),
    "gelu": alone(lambda x: x.gelu()),
    "silu": alone(silu),
    "svd": [
        Case(lambda x, c=columns: x.svd(c), ((n, n),)) for n, columns in ((3, 3), (5, 2), (1, 1))
    ],
    "matmul": [
        Case(lambda a, b: a @ b, shapes)
        for shapes in (
            ((3, 4), (4, 2)),
            ((1, 1), (1, 1)),
            ((3, 0), (0, 2)),
            ((0, 3), (3, 2)),
            ((5, 3, 4), (5, 4, 2)),
            ((5, 3, 4), (1, 4, 2)),
            ((5, 3, 4), (4, 2)),
            ((5, 1, 4), (1, 4, 2)),
            ((2, 5, 1, 4), (2, 1, 4, 3)),
        )
    ],
    "mask_where": [
        Case(lambda x, y: x.mask_where(every_third(x + y), y), shapes)
        for shapes in (((3, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (1, 4)), ((0, 3), (1, 3)))
    ],
    "mask_fill": alone(lambda x: x.mask_fill(every_third(x), 2.0)),
    "sum": alone(lambda x: x.sum()),
    "mean": [Case(lambda x: x.mean(), (shape,)) for shape in REDUCED],
    "sum_dim": each_dim(sum_dim, SHAPES),
    "mean_dim": each_dim(mean_dim, REDUCED),
    "max_dim": each_dim(max_dim, REDUCED),
    "swap_dims": each_dim(lambda x, dim: x.swap_dims(dim, 0), SHAPES),
    "transpose": [Case(lambda x: x.transpose(), (shape,)) for shape in ((3, 4), (2, 1, 5), (0, 3))],
    "permute": [Case(lambda x: x.permute([2, 0, 1]), (shape,)) for shape in ((2, 3, 4), (2, 1, 0))],
    "reshape": [
        Case(lambda x: x.reshape([-1, 2]), ((3, 4),)),
        Case(lambda x: x.reshape([1, 1, 1]), ((1,),)),
        Case(lambda x: x.reshape([3, 0, 5]), ((0, 3),)),
    ],
    "expand": [
        Case(lambda x: x.expand([2, 3, 4]), (shape,)) for shape in ((3, 4), (1, 4), (3, 1), (1,))
    ]
    + [Case(lambda x: x.expand([0, -1]), ((1, 3),)), Case(lambda x: x.expand([-1, 4]), ((3, 4),))],
    "slice": [
        Case(lambda x: x[1:3], ((3, 4),)),
        Case(lambda x: x[:, ::-2], ((3, 4),)),
        Case(lambda x: x[0:1, 0:1, 1:1], ((2, 1, 5),)),
        Case(lambda x: OPERATIONS["slice"](x, [[0, 2], [1, 4, 2]]), ((3, 4),)),
    ],
    "cat": [
        Case(lambda *xs: cat(xs, 1), ((3, 4), (3, 1), (3, 2))),
        Case(lambda *xs: cat(xs, 0), ((0, 4), (2, 4))),
        Case(lambda x: cat([x, x], -1), ((2, 3),)),
        Case(lambda x: cat([x], 0), ((2, 3),)),
    ],
    "tan": alone(lambda x: (x * 0.7).tan()),
    "sinh": alone(lambda x: x.sinh()),
    "cosh": alone(lambda x: x.cosh()),
    "asin": alone(lambda x: (x * 0.5).asin()),
    "acos": alone(lambda x: (x * 0.5).acos()),
    "atan": alone(lambda x: x.atan()),
    "asinh": alone(lambda x: x.asinh()),
    "acosh": alone(lambda x: (x + 1.0).acosh(), positive=True),
    "atanh": alone(lambda x: (x * 0.5).atanh()),
    "erf": alone(lambda x: x.erf()),
    "log_sigmoid": [*alone(lambda x: x.log_sigmoid()), *alone(lambda x: (x * 50.0).log_sigmoid())],
    "square": alone(lambda x: x.square()),
    "powi_scalar": [case for e in (-2, 1, 3) for case in alone(lambda x, e=e: x.powi_scalar(e))],
    "sign": alone(lambda x: x.sign() + x),
    "round": alone(lambda x: x.round() + x),
    "floor": alone(lambda x: x.floor() + x),
    "ceil": alone(lambda x: x.ceil() + x),
    "trunc": alone(lambda x: x.trunc() + x),
    "remainder": pairs(lambda a, b: (a * 3.0) % b, positive=True),
    "remainder_scalar": [*alone(lambda x: x % 0.7), *alone(lambda x: x % -0.7)],
    "powf": pairs(lambda a, b: a.powf(b), positive=True),
    "atan2": pairs(lambda a, b: a.atan2(b)),
    "hypot": pairs(lambda a, b: a.hypot(b)),
    "clamp_min": alone(lambda x: x.clamp_min(-0.5)),
    "clamp_max": alone(lambda x: x.clamp_max(0.5)),
    "clamp": alone(lambda x: x.clamp(-1.0, 0.5)),
    "flip": [
        Case(lambda x: x.flip([0]), ((3, 4),)),
        Case(lambda x: x.flip([0, -1]), ((2, 1, 5),)),
        Case(lambda x: x.flip([1]), ((0, 3),)),
    ],
    "repeat_dim": each_dim(lambda x, dim: x.repeat_dim(dim, 3), SHAPES),
    "unfold": [
        Case(lambda x: x.unfold(1, 3, 2), ((2, 7),)),
        Case(lambda x: x.unfold(0, 2, 1), ((4, 3),)),
        Case(lambda x: x.unfold(-1, 1, 3), ((2, 1, 5),)),
        Case(lambda x: x.unfold(1, 2, 1), ((0, 3),)),
    ],
    "cast": alone(lambda x: cast_always(x, x.dtype)),
    "unsqueeze": [Case(lambda x, d=d: x.unsqueeze(d), ((3, 4),)) for d in (0, 1, 2, -1)],
    "squeeze": [
        Case(lambda x: x.squeeze(1), ((2, 1, 5),)),
        Case(lambda x: x.squeeze(0), ((1, 3),)),
    ],
    "flatten": [
        Case(lambda x: x.flatten(0, 1), ((2, 3, 4),)),
        Case(lambda x: x.flatten(1, -1), ((2, 3, 0),)),
    ],
    "narrow": each_dim(lambda x, dim: x.narrow(dim, 0, 1), ((3, 4), (2, 1, 5))),
    "slice_assign": [
        Case(lambda x, y: x.slice_assign([[1, 3], [0, 4, 2]], y), ((3, 4), (2, 2))),
        Case(lambda x, y: x.slice_assign([slice(0, 0)], y), ((3, 4), (0, 4))),
        Case(lambda x, y: x.slice_assign([slice(None)], y), ((1,), (1,))),
    ],
    "select": [
        Case(lambda x: x.select(0, [2, 0, 2]), ((3, 4),)),
        Case(lambda x: x.select(-1, [1]), ((2, 1, 5),)),
        Case(lambda x: x.select(1, []), ((3, 4),)),
        Case(lambda x: x.select(1, [0, 2]), ((0, 3),)),
    ],
    "select_add": [
        Case(lambda x, y: x.select_add(0, [2, 0, 2], y), ((3, 4), (3, 4))),
        Case(lambda x, y: x.select_add(2, [4, 1], y), ((2, 1, 5), (2, 1, 2))),
        Case(lambda x, y: x.select_add(1, [], y), ((3, 4), (3, 0))),
    ],
    "select_assign": [
        Case(lambda x, y: x.select_assign(0, [2, 0], y), ((3, 4), (2, 4))),
        Case(lambda x, y: x.select_assign(-1, [4, 1], y), ((2, 1, 5), (2, 1, 2))),
    ],
    "mask_select": alone(lambda x: x.mask_select(every_third(x))),
    "gather": [
        Case(lambda x: x.gather(1, [[0, 0, 3], [2, 1, 1], [3, 3, 3]]), ((3, 4),)),
        Case(lambda x: x.gather(0, [[2, 0]]), ((3, 4),)),
        Case(lambda x: x.gather(0, [0, 0]), ((1,),)),
        Case(lambda x: x.gather(1, np.zeros((0, 2), int)), ((0, 3),)),
    ],
    "gather_nd": [
        Case(lambda x: x.gather_nd([[0, 1], [2, 3], [0, 1]]), ((3, 4),)),
        Case(lambda x: x.gather_nd([[2], [0]]), ((3, 4),)),
        Case(lambda x: x.gather_nd([[[1, 0]], [[0, 0]]]), ((2, 1, 5),)),
        Case(lambda x: x.gather_nd([1, 2]), ((3, 4),)),
    ],
    "scatter_add": [
        Case(lambda x, y: x.scatter_add(1, [[0, 0], [2, 1], [3, 3]], y), ((3, 4), (3, 2))),
        Case(lambda x, y: x.scatter_add(0, [[2, 0]], y), ((3, 4), (1, 2))),
        Case(lambda x, y: x.scatter_add(0, [0, 0, 0], y), ((1,), (3,))),
    ],
    "scatter": [
        Case(lambda x, y, u=u: x.scatter(1, [[0, 2], [2, 1], [3, 1]], y, u), ((3, 4), (3, 2)))
        for u in ("add", "assign")
    ],
    "scatter_nd": [
        case
        for u in ("add", "assign", "mul", "min", "max")
        for case in (
            Case(lambda x, y, u=u: x.scatter_nd([[0, 1], [2, 3]], y, u), ((3, 4), (2,))),
            Case(lambda x, y, u=u: x.scatter_nd([[2], [0]], y, u), ((3, 4), (2, 4))),
            Case(lambda x, y, u=u: x.scatter_nd([0], y, u), ((1,), (1,))),
        )
    ],
    "cross": [
        Case(lambda a, b: a.cross(b, 1), ((4, 3), (4, 3))),
        Case(lambda a, b: a.cross(b, 0), ((3, 2), (3, 1))),
        Case(lambda a, b: a.cross(b, -1), ((2, 1, 3), (4, 3))),
        Case(lambda a, b: a.cross(b, 1), ((0, 3), (1, 3))),
    ],
    "cumsum": each_dim(lambda x, dim: x.cumsum(dim), SHAPES),
    "cumprod": each_dim(lambda x, dim: x.cumprod(dim), SHAPES),
    "cummin": each_dim(lambda x, dim: x.cummin(dim), SHAPES),
    "cummax": each_dim(lambda x, dim: x.cummax(dim), SHAPES),
    "prod": alone(lambda x: x.prod()),
    "prod_dim": each_dim(lambda x, dim: x.prod_dim(dim), SHAPES),
    "min_dim": each_dim(lambda x, dim: x.min_dim(dim), REDUCED),
    "max": [Case(lambda x: x.max(), (shape,)) for shape in REDUCED],
    "min": [Case(lambda x: x.min(), (shape,)) for shape in REDUCED],
    "max_abs": [Case(lambda x: x.max_abs(), (shape,)) for shape in REDUCED],
    "max_abs_dim": each_dim(lambda x, dim: x.max_abs_dim(dim), REDUCED),
    "sort": [
        *each_dim(lambda x, dim: x.sort(dim), SHAPES),
        *each_dim(lambda x, dim: x.sort(dim, True), SHAPES),
        *each_dim(lambda x, dim: x.topk_with_indices(1, dim)[0], REDUCED),
    ],
    "var": [Case(lambda x, d=d: x.var(d), ((3, 4),)) for d in (0, 1)],
    **MODULE_CASES,
}
