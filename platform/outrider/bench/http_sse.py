"""Server-sent events, read from bytes as they come (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations


class EventReader:
    """Cuts a byte stream into the data of its events, wherever the chunks were cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of every event that ended with this chunk."""
        lines = (self._rest + chunk).splitlines(keepends=True)
        # A line without its end, or with one that may be the first half of "\r\n", waits.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        return [event for line in lines if (event := self._take(line.rstrip(b"\r\n"))) is not None]

    def _take(self, line: bytes) -> str | None:
        """Remember a line of data; at the empty line that ends an event return its data."""
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data).decode("utf-8", "replace") if data else None
        name, _, value = line.partition(b":")
        if name == b"data":  # anything else is a comment or a field nobody needs here
            self._data.append(value.removeprefix(b" "))
        return None
