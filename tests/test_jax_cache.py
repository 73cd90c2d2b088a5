"""A compiled function of JAX in a fresh process, where the user keeps a compilation cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backend_kit import NEEDS_JAX
from tests.test_compiled import facts_of

pytestmark = [NEEDS_JAX, pytest.mark.fresh_process, pytest.mark.slow]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    names = (
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
    )
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, (str(tmp_path), 0, -1)):
        jax.config.update(name, value)
    reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()


def loss(parameters: Any) -> Any:
    import jax.numpy as jnp

    first, second = parameters
    return jnp.tanh(first @ second).sum()


def test_what_is_read_from_the_cache_is_measured_in_a_fresh_process(cache: Path) -> None:
    import jax

    for _ in range(2):
        jax.clear_caches()
        found = facts_of(loss, 64)
        assert found.why_no_process is None
        assert found.plan is not None
    written = sorted(path.name for path in cache.iterdir())
    assert any("loss" in name for name in written)
    assert jax.config.jax_enable_compilation_cache
    assert jax.config.jax_compilation_cache_dir == str(cache)
