"""`scripts/fuzz record`: saved runs with values that no run writes, in `show` and `compare`."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ckptcli.measure.record_json import record_object
from tests.fuzz_kit import main, value
from tests.picture_records import points
from tests.records import balanced_record, none_record, run_record

MOST_CHANGES = 4
VIEWS = (
    ("show", "b.json"),
    ("show", "b.json", "-v"),
    ("show", "b.json", "--stats"),
    ("show", "b.json", "--hist"),
    ("show", "b.json", "--timeline", "--width", "60"),
    ("show", "b.json", "--json"),
    ("show", "b.json", "--export", "out.html"),
    ("show", "b.json", "--export", "out.svg"),
    ("show", "b.json", "--export", "out.md"),
    ("show", "b.json", "--export", "out.csv"),
    ("show", "b.json", "--export", "out.trace.json"),
    ("compare", "a.json", "b.json"),
    ("compare", "b.json", "a.json", "--json"),
    ("compare", "a.json", "b.json", "--export", "out.md", "--fail-on", "time > 5%"),
)


@cache
def _whole() -> list[dict[str, Any]]:
    """A run of one program, and one of two."""
    return [record_object(run_record(none_record(), balanced_record())), record_object(points())]


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in the data with each of its keys."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from places(data[key])


def case(draw: random.Random, folder: Path) -> Sequence[Sequence[str]]:
    """A record with some of its values replaced, gone or twice."""
    data = copy.deepcopy(draw.choice(_whole()))
    (folder / "a.json").write_text(json.dumps(draw.choice(_whole())))
    for _ in range(draw.randint(1, MOST_CHANGES)):
        container, key = draw.choice(list(places(data)))
        what = draw.random()
        if what < 0.1:
            del container[key]
        elif what < 0.2 and isinstance(container, list):
            container.append(container[key])
        else:
            container[key] = value(draw)
    (folder / "b.json").write_text(json.dumps(data), encoding="utf-8")
    return draw.sample(VIEWS, 3)


if __name__ == "__main__":
    sys.exit(main("record", case))
