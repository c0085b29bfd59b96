"""API keys: read once, kept as digests, compared in constant time, never written anywhere."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from outrider.core import UserError


class Keys:
    """A set of keys. An empty one admits everybody."""

    def __init__(self, keys: frozenset[str] = frozenset()) -> None:
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: str, setting: str) -> Keys:
        """One key a line; empty lines and lines with # are left out. No path: no keys."""
        if not path:
            return cls()
        try:
            lines = Path(path).read_text().splitlines()
        except OSError as error:
            raise UserError(f"{setting}: can't read {path}: {error.strerror}") from error
        except UnicodeError as error:
            raise UserError(f"{setting}: {path} is not text") from error
        keys = frozenset(key for line in lines if (key := line.strip()) and key[0] != "#")
        if not keys:
            raise UserError(f"{setting}: no key in {path}; write one a line")
        if not all(key.isascii() and key.isprintable() and " " not in key for key in keys):
            raise UserError(f"{setting}: a key in {path} has spaces or letters beyond ASCII")
        return cls(keys)

    @property
    def is_open(self) -> bool:
        return not self._digests

    def admit(self, authorization: str | None) -> bool:
        """`authorization`: the header, "Bearer <key>". Every key is compared, whichever fits."""
        if self.is_open:
            return True
        scheme, _, key = (authorization or "").partition(" ")
        shown = _digest(key.strip())
        fits = [hmac.compare_digest(shown, digest) for digest in self._digests]
        return scheme.lower() == "bearer" and any(fits)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
