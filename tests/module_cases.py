"""The programs on which module ops and composed functions are run: layers, activations, losses."""

from __future__ import annotations

import numpy as np

from ckptcli import cat
from tests.case_kit import REDUCED, Case, alone, each_dim, pairs

MODULE_CASES: dict[str, list[Case]] = {
    "linear": [
        *(
            Case(lambda x, w, b=None: x.linear(w, b), shapes)
            for shapes in (
                ((3, 4), (4, 2)),
                ((3, 4), (4, 2), (2,)),
                ((4,), (4, 2), (2,)),
                ((2, 3, 4), (4, 2), (2,)),
                ((0, 4), (4, 2), (2,)),
                ((1, 1), (1, 1), (1,)),
            )
        ),
    ],
    "embedding": [
        Case(lambda w: w.embedding([[0, 2], [2, 1]]), ((3, 4),)),
        Case(lambda w: w.embedding([0]), ((1, 1),)),
        Case(lambda w: w.embedding([]), ((3, 4),)),
    ],
    "conv1d": [
        Case(lambda x, w: x.conv1d(w), ((2, 3, 7), (4, 3, 3))),
        Case(
            lambda x, w, b: x.conv1d(w, b, stride=2, padding=1, dilation=2, groups=2),
            ((2, 4, 8), (6, 2, 3), (6,)),
        ),
        Case(lambda x, w, b: x.conv1d(w, b), ((1, 1, 1), (1, 1, 1), (1,))),
        Case(lambda x, w, b: x.conv1d(w, b), ((0, 2, 5), (3, 2, 2), (3,))),
    ],
    "conv2d": [
        Case(lambda x, w, b: x.conv2d(w, b, padding=1), ((2, 3, 4, 5), (2, 3, 3, 3), (2,))),
        Case(
            lambda x, w: x.conv2d(w, None, [2, 1], [0, 1], [1, 2], 2), ((1, 4, 6, 5), (2, 2, 2, 3))
        ),
    ],
    "conv3d": [
        Case(
            lambda x, w, b: x.conv3d(w, b, stride=[1, 2, 1], padding=[1, 0, 1]),
            ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), (2,)),
        )
    ],
    "conv_transpose1d": [
        Case(lambda x, w: x.conv_transpose1d(w), ((2, 3, 4), (3, 2, 3))),
        Case(lambda x, w, b: x.conv_transpose1d(w, b, 2, 1, 1, 2, 2), ((2, 4, 3), (4, 3, 2), (6,))),
    ],
    "conv_transpose2d": [
        Case(
            lambda x, w, b: x.conv_transpose2d(w, b, [2, 1], [1, 0], [1, 0]),
            ((1, 3, 3, 2), (3, 2, 3, 2), (2,)),
        ),
    ],
    "conv_transpose3d": [
        Case(lambda x, w: x.conv_transpose3d(w, stride=2), ((1, 2, 2, 1, 2), (2, 2, 2, 2, 1))),
    ],
    "deform_conv2d": [
        Case(lambda x, o, w: x.deform_conv2d(o, w), ((2, 2, 4, 3), (2, 8, 3, 2), (3, 2, 2, 2))),
        Case(
            lambda x, o, w, m: x.deform_conv2d(o, w, m, padding=1),
            ((1, 2, 3, 3), (1, 18, 3, 3), (2, 2, 3, 3), (1, 9, 3, 3)),
        ),
        Case(
            lambda x, o, w, m, b: x.deform_conv2d(o, w, m, b, [2, 1], [1, 0], [1, 2], 2, 4),
            ((2, 4, 5, 4), (2, 32, 3, 2), (6, 2, 2, 2), (2, 16, 3, 2), (6,)),
        ),
        Case(
            lambda x, o, w, b: x.deform_conv2d(o * 9.0, w, None, b),
            ((1, 1, 2, 2), (1, 2, 2, 2), (1, 1, 1, 1), (1,)),
        ),
        Case(lambda x, o, w: x.deform_conv2d(o, w), ((0, 1, 2, 2), (0, 2, 2, 2), (2, 1, 1, 1))),
    ],
    "ctc_loss": [
        Case(
            lambda x: x.ctc_loss([[1, 2, 2], [3, 9, 9], [2, 1, 7]], [6, 4, 5], [3, 1, 2]),
            ((6, 3, 4),),
        ),
        Case(
            lambda x: x.log_softmax(2).ctc_loss([[0, 1], [0, 0]], [5, 5], [2, 2], 2), ((5, 2, 3),)
        ),
        Case(lambda x: x.ctc_loss([[1, 2], [0, 0]], [4, 2], [2, 0]), ((4, 2, 3),)),
        Case(lambda x: x.ctc_loss([[]], [3], [0]), ((3, 1, 2),)),
        Case(lambda x: x.ctc_loss([[1]], [1], [1]), ((1, 1, 2),)),
        Case(lambda x: x.ctc_loss(np.zeros((0, 2), int), [], []), ((3, 0, 2),)),
    ],
    "avg_pool1d": [
        Case(lambda x, c=c, up=up: x.avg_pool1d(3, 2, 1, c, up), ((2, 2, 8),))
        for c in (True, False)
        for up in (True, False)
    ],
    "avg_pool2d": [
        Case(lambda x: x.avg_pool2d([2, 3], [1, 2], [1, 0]), ((2, 1, 4, 5),)),
        Case(lambda x: x.avg_pool2d([2, 3], 3, [1, 0], ceil_mode=True), ((1, 2, 4, 2),)),
        Case(lambda x: x.avg_pool2d(1), ((1, 1, 1, 1),)),
        Case(lambda x: x.avg_pool2d(2, 2), ((0, 1, 4, 4),)),
    ],
    "adaptive_avg_pool1d": [Case(lambda x: x.adaptive_avg_pool1d(3), ((2, 2, 7),))],
    "adaptive_avg_pool2d": [Case(lambda x: x.adaptive_avg_pool2d([3, 6]), ((2, 2, 5, 4),))],
    "adaptive_avg_pool3d": [Case(lambda x: x.adaptive_avg_pool3d(2), ((1, 2, 3, 4, 5),))],
    "max_pool1d": [
        Case(lambda x: x.max_pool1d(3, 2, 1), ((2, 2, 7),)),
        Case(lambda x: x.max_pool1d(2, 1, 0, 2), ((2, 2, 6),)),
        Case(lambda x: x.max_pool1d(2, 3, 0, 2, True), ((2, 2, 8),)),
        Case(lambda x: x.max_pool1d(2), ((0, 2, 6),)),
    ],
    "max_pool2d": [
        Case(lambda x: x.max_pool2d([2, 3], [1, 2], [1, 1]), ((2, 3, 4, 5),)),
        Case(lambda x: x.max_pool2d([2, 3], [3, 2], [0, 1], ceil_mode=True), ((1, 2, 4, 6),)),
        Case(lambda x: x.max_pool2d(1), ((1, 1, 1, 1),)),
    ],
    "interpolate": [
        Case(lambda x, m=m, a=a: x.interpolate([5, 3], m, a), ((2, 1, 3, 4),))
        for m, a in (
            ("nearest", True),
            ("bilinear", True),
            ("bilinear", False),
            ("bicubic", True),
            ("bicubic", False),
        )
    ],
    "rfft": [
        *(
            Case(lambda x, d=d: cat(x.rfft(d), 0), (shape,))
            for shape in ((3, 8), (3, 5), (1, 1))
            for d in (0, 1)
        ),
        Case(lambda x: x.rfft(0)[1], ((6,),)),
    ],
    "irfft": [
        Case(lambda re, im: re.irfft(im, 1), ((3, 5), (3, 5))),
        Case(lambda re, im: re.irfft(im, 0, 5), ((3, 2), (3, 2))),
    ],
    "gelu_approximate": alone(lambda x: x.gelu_approximate()),
    "leaky_relu": alone(lambda x: x.leaky_relu(0.1)),
    "prelu": [
        Case(lambda x, a: x.prelu(a), shapes)
        for shapes in (((3, 4), (4,)), ((3, 4), (1,)), ((1,), (1,)), ((2, 3, 5), (3,)))
    ],
    "hard_sigmoid": alone(lambda x: x.hard_sigmoid(0.5, 0.4)),
    "hard_swish": alone(lambda x: x.hard_swish()),
    "softplus": alone(lambda x: x.softplus(1.5)),
    "mish": alone(lambda x: x.mish()),
    "elu": alone(lambda x: x.elu(1.3)),
    "celu": alone(lambda x: x.celu(1.3)),
    "selu": alone(lambda x: x.selu()),
    "hardtanh": alone(lambda x: x.hardtanh(-0.8, 0.9)),
    "relu6": alone(lambda x: (x * 5.0).relu6()),
    "threshold": alone(lambda x: x.threshold(0.5, -0.3)),
    "thresholded_relu": alone(lambda x: x.thresholded_relu(0.6)),
    "tanhshrink": alone(lambda x: x.tanhshrink()),
    "softsign": alone(lambda x: x.softsign()),
    "glu": [
        Case(lambda x: x.glu(1), ((3, 4),)),
        Case(lambda x: x.glu(0), ((2, 1, 5),)),
        Case(lambda x: x.glu(0), ((0, 3),)),
    ],
    "shrink": alone(lambda x: x.shrink(0.6, 0.2)),
    "soft_shrink": alone(lambda x: x.soft_shrink()),
    "hard_shrink": alone(lambda x: x.hard_shrink()),
    "softmax": each_dim(lambda x, dim: (x * 1.5).softmax(dim), REDUCED),
    "log_softmax": each_dim(lambda x, dim: (x * 1.5).log_softmax(dim), REDUCED),
    "softmin": each_dim(lambda x, dim: x.softmin(dim), REDUCED),
    "quiet_softmax": each_dim(lambda x, dim: (x * 1.5).quiet_softmax(dim), REDUCED),
    "layer_norm": [
        Case(lambda x, g, b=None: x.layer_norm(g, b), shapes)
        for shapes in (((3, 4), (4,), (4,)), ((2, 3, 5), (5,)), ((2, 1), (1,), (1,)))
    ],
    "rms_norm": [
        Case(lambda x, g: x.rms_norm(g), shapes) for shapes in (((3, 4), (4,)), ((2, 1), (1,)))
    ],
    "batch_norm": [
        Case(lambda x, *rest: x.batch_norm(*rest), (x, (3,), (3,), (3,), (3,)), positive=True)
        for x in ((2, 3, 4), (2, 3), (1, 3, 2, 2), (0, 3, 2))
    ],
    "batch_norm_train": [
        Case(lambda x, g, b: x.batch_norm_train(g, b), (x, (3,), (3,)))
        for x in ((2, 3, 4), (4, 3), (2, 3, 2, 2))
    ],
    "attention": [
        Case(lambda q, k, v: q.attention(k, v), ((2, 1, 3, 4), (2, 1, 5, 4), (2, 1, 5, 2))),
        Case(
            lambda q, k, v, b: q.attention(
                k, v, b, mask=[[0, 1, 0], [1, 1, 1]], scale=0.7, softcap=2.0, is_causal=True
            ),
            ((1, 2, 2, 4), (1, 2, 3, 4), (1, 2, 3, 2), (1, 1, 2, 3)),
        ),
    ],
    "dropout": alone(lambda x: x.dropout(0.4)),
    "mse": pairs(lambda a, b: a.mse(b))[:6],
    "cross_entropy_with_logits": [
        Case(lambda x, t: (x * 2.0).cross_entropy_with_logits(t), ((3, 4), (3, 4))),
        Case(lambda x, t: x.cross_entropy_with_logits(t), ((1,), (1,))),
    ],
    "cross_entropy": [
        Case(lambda x: (x * 2.0).cross_entropy([3, 0, 1]), ((3, 4),)),
        Case(lambda x: (x * 2.0).cross_entropy([3, 0, 1], [0, 2]), ((3, 4),)),
        Case(lambda x: x.cross_entropy([0]), ((1, 1),)),
    ],
}
