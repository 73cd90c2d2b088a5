"""A small part of `scripts/fuzz ops`, and that it would find what it is for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ckptcli import device
from ckptcli.autodiff.describe import descriptions
from tests.backend_kit import BACKENDS, NEEDS_TORCH
from tests.fuzz_closed_forms import FORMS, NEEDS_LONG_DOUBLE, wrong_elements

WITHOUT_A_PROGRAM = {
    "batch_norm": "made of ops that have one",
    "batch_norm_train": "made of ops that have one",
    "cast": "rounds",
    "cross_entropy_with_logits": "made of ops that have one",
    "ctc_loss": "tests/test_ctc.py",
    "deform_conv2d": "tests/test_deformable.py",
    "detach": "has no gradient",
    "dropout": "is random",
    "flatten": "a reshape",
    "gather_nd": "gather by vectors",
    "irfft": "the adjoint of rfft",
    "narrow": "a slice",
    "rms_norm": "made of ops that have one",
    "scatter": "by its updates",
    "scatter_assign": "scatter assign",
    "scatter_nd": "by its updates",
    "scatter_nd_add": "scatter_add by vectors",
    "select_assign": "scatter assign of slices",
    "slice_assign": "scatter assign of slices",
    "squeeze": "a reshape",
    "svd": "tests/test_svd.py",
    "transpose": "swap_dims",
}
"""The entries of the op table that the fuzzer leaves out, and why or where they are tested."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@NEEDS_LONG_DOUBLE
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", FORMS)
def test_a_closed_form_holds_to_the_ends_of_the_range(name: str, library: str) -> None:
    dev = device(library, "cpu").autodiff()
    for seed in range(4):
        for dtype in ("float32", "float64"):
            rng = np.random.Generator(np.random.PCG64(seed))
            assert list(wrong_elements(dev, name, dtype, rng)) == []


@NEEDS_LONG_DOUBLE
def test_a_quotient_that_squares_its_divisor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, "div", replace(FORMS["div"], ours=lambda a, b: a * b / (b * b)))
    rng = np.random.Generator(np.random.PCG64(0))
    found = list(wrong_elements(device().autodiff(), "div", "float32", rng))
    assert [what for what, *_ in found] == [
        "div in float32, value",
        "div in float32, gradient of 0",
        "div in float32, gradient of 1",
    ]


@NEEDS_TORCH
@pytest.mark.slow
def test_every_op_agrees_with_pytorch_under_every_strategy() -> None:
    from tests.fuzz_ops import OPS, run

    count, findings = run(20261130, OPS, lambda count: count < 4 * len(OPS))
    assert count == 4 * len(OPS)
    assert [str(finding) for finding in findings] == []


@NEEDS_TORCH
@pytest.mark.slow
def test_every_entry_of_the_op_table_has_a_program_or_a_reason() -> None:
    from tests.fuzz_ops import MAKERS

    met = {word for name in MAKERS for word in (name, name.partition(" ")[0])}
    met |= {name.replace(" ", "_") for name in MAKERS}
    assert descriptions().keys() - met - WITHOUT_A_PROGRAM.keys() == set()
