"""The backends by name. An array library registers itself; its file is all that it takes.

Nothing here loads a library: which version is installed is read from its metadata.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import ckptcli.backends.libraries as package
from ckptcli.errors import CkptError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from ckptcli.backends.base import Backend

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device that a library can compute on.

    Attributes:
        name: what `--device` takes.
        title: the model, where it is known.
        memory_bytes: of the device; None where it is not known.
        is_gpu: whether `auto` prefers it.
    """

    name: str
    title: str = ""
    memory_bytes: int | None = None
    is_gpu: bool = False


def processor() -> DeviceFacts:
    """The host's, whose memory is not a library's to tell."""
    import platform

    return DeviceFacts("cpu", platform.machine())


class ArrayLibrary:
    """An array library that may be installed.

    Attributes:
        name: of the backend, on the command line.
        title: of the library.
        packages: the distributions that bring it, any one of them.
        install: the line that installs it.
        device_names: what `--device` can mean with it, the default first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    install: ClassVar[str]
    device_names: ClassVar[tuple[str, ...]]

    def installed_version(self) -> str | None:
        """The version; None where the library is not installed."""
        from importlib.metadata import PackageNotFoundError, version

        for distribution in self.packages:
            try:
                return version(distribution)
            except PackageNotFoundError:
                continue
        return None

    @abstractmethod
    def devices(self) -> Sequence[DeviceFacts]:
        """What there is to compute on; loads the library."""

    @abstractmethod
    def open(self, device: str) -> Backend:
        """The backend on one of `devices`; loads the library."""


_LIBRARIES: dict[str, ArrayLibrary] = {}

LibraryClass = TypeVar("LibraryClass", bound=type[ArrayLibrary])


def register(library: LibraryClass) -> LibraryClass:
    """Class decorator: makes the library known under its `name`."""
    _LIBRARIES[library.name] = library()
    return library


def libraries() -> dict[str, ArrayLibrary]:
    """Every library by name, `numpy` first, installed or not."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_LIBRARIES.items(), key=lambda item: (item[0] != "numpy", item[0])))


def open_backend(name: str = "numpy", device: str | None = None) -> Backend:
    """The backend called `name` on a device; by default on the library's first.

    `auto` is a GPU if there is one.

    Raises:
        UnknownNameError: there is no such backend.
        UsageError: the library is not installed or cannot be loaded, or it has no such device.
    """
    known = libraries()
    if name not in known:
        raise UnknownNameError("backend", name, known)
    library = known[name]
    try:
        return library.open(_device_of(library, device))
    except (CkptError, MemoryError):
        raise
    except Exception as error:
        what = f"backend `{name}`: {not_loaded(library, error)}"
        if library.installed_version() is None:
            what = f"backend `{name}` needs {library.title}, which is not installed"
        raise UsageError(what, library.install) from error


def place_of(device: str) -> tuple[str, str]:
    """The library and its device that `device` stands for where no library was named.

    `auto` is the first GPU that one of them sees, else the processor.

    Raises:
        UsageError: no library has such a device.
    """
    wanted = _whole_name(device)
    there: list[tuple[str, DeviceFacts]] = []
    for name, library in libraries().items():  # none is loaded after the one that is taken
        for of in _devices(library):
            there.append((name, of))
            if of.is_gpu if device == AUTO else of.name == wanted:
                return name, of.name
    if device == AUTO:
        return there[0][0], there[0][1].name
    names = ", ".join(dict.fromkeys(of.name for _, of in there))
    raise UsageError(
        f"no array library here has a device `{wanted}`",
        f"there are: {names}; `ckpt backends` says what is missing",
    )


def _devices(library: ArrayLibrary) -> Sequence[DeviceFacts]:
    """Those that it sees; none where it is not installed or cannot be loaded."""
    try:
        return library.devices()
    except Exception:  # each library fails in its own way
        return ()


def _whole_name(device: str) -> str:
    return "cuda:0" if device == "cuda" else device


def not_loaded(library: ArrayLibrary, error: Exception) -> str:
    """What a library says that is installed and broken, which each is in its own way."""
    return f"{library.title} cannot be loaded: {str(error).strip() or repr(error)}"


def _device_of(library: ArrayLibrary, name: str | None) -> str:
    """The device that `name` stands for: one of the library's."""
    if name is None and library.device_names[0] == "cpu":
        return "cpu"
    there = library.devices()
    wanted = library.device_names[0] if name is None else name
    if wanted == AUTO:
        gpus = [device for device in there if device.is_gpu]
        chosen = [*gpus, *there][:1]
    else:
        wanted = _whole_name(wanted)
        chosen = [device for device in there if device.name == wanted]
    if not chosen:
        names = ", ".join(device.name for device in there) or "none on this machine"
        raise UsageError(
            f"backend `{library.name}` has no device `{wanted}`",
            f"there are: {names}; without --backend the library is taken that has it",
        )
    return chosen[0].name
