"""Redis' protocol, RESP2 and RESP3, by bytes: replies are counted and compared as they came.

A reply is kept as its bytes. `tree` reads one into (kind, content), where kind is the first byte; two replies are the
same if and only if their bytes are, so nothing is lost by a conversion.
"""

import select
import socket
import time

AGGREGATES = b"*~>%|"


class Gone(Exception):
    """The server has closed the connection."""


class Late(Exception):
    """No whole reply came in time."""


def pack(words):
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%s\r\n" % (len(w), w) for w in words])


def end_of(data, at):
    """Where the reply that begins at `at` ends, or -1 while it is not whole. ValueError: no reply."""
    todo = 1
    while todo:
        line = data.find(b"\r\n", at)
        if line < 0:
            return -1
        kind = data[at:at + 1]
        if kind in b"$=!":
            size = int(data[at + 1:line])
            line += max(size, -2) + 2 if size >= 0 else 0
            if line + 2 > len(data):
                return -1
        elif kind in AGGREGATES:
            size = int(data[at + 1:line])
            todo += max(size, 0) * (2 if kind in b"%|" else 1) + (kind == b"|")  # attributes precede a reply
        elif kind not in b"+-:_,#(":
            raise ValueError(f"no reply: {bytes(data[at:at + 60])!r}")
        at = line + 2
        todo -= 1
    return at


def tree(data, at=0):
    """The reply as (kind, content), and where it ends. Content: bytes, None, or a list of such pairs."""
    line = data.index(b"\r\n", at)
    kind, head = data[at:at + 1], data[at + 1:line]
    if kind in b"$=!":
        size = int(head)
        return ((kind, None), line + 2) if size < 0 else ((kind, data[line + 2:line + 2 + size]), line + 4 + size)
    if kind not in AGGREGATES:
        return (kind, None if kind == b"_" else head), line + 2
    size, at = int(head), line + 2
    if size < 0:
        return (kind, None), at
    content = []
    for _ in range(size * (2 if kind in b"%|" else 1)):
        one, at = tree(data, at)
        content.append(one)
    return (kind, content), at


def elements(raw):
    """The replies within an array; none if the reply is not one."""
    (kind, content), _ = tree(raw)
    return content if kind in AGGREGATES and content is not None else []


def text(node):
    """The text of a node of a tree, b"" for null."""
    return node[1] if isinstance(node[1], bytes) else b""


def show(raw, most=300):
    """A reply as a line for people."""
    def shown(node):
        kind, content = node
        if content is None:
            return "(null array)" if kind == b"*" else "(null)"
        if kind in AGGREGATES:
            return {b"*": "", b"~": "set ", b"%": "map ", b">": "push ", b"|": "attribute "}[kind] + "[" + ", ".join(map(shown, content)) + "]"
        if kind == b"$":
            return repr(content)[1:]
        return f"{kind.decode()}{content.decode('latin-1')}"
    if raw is None:
        return "(nothing)"
    told = shown(tree(raw)[0])
    return told if len(told) <= most else f"{told[:most]}... ({len(raw)} bytes)"


class Connection:
    """One connection by a Unix socket. Not thread safe."""

    def __init__(self, path, limit):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(limit)
        self.socket.connect(path)
        self.limit = limit
        self.data = bytearray()
        self.begin = 0

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.settimeout(self.limit)
            self.socket.sendall(data)
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Gone from None

    def receive(self, limit):
        """Takes what the server has sent; waits for it at most so long. False: nothing came."""
        if not select.select([self.socket], [], [], max(limit, 0))[0]:
            return False
        try:
            got = self.socket.recv(1 << 18)
        except OSError:
            raise Gone from None
        if not got:
            raise Gone
        if self.begin == len(self.data):
            self.data.clear()
            self.begin = 0
        self.data += got
        return True

    def take(self):
        """The next reply if it is whole, else None."""
        if self.begin == len(self.data):
            return None
        end = end_of(self.data, self.begin)
        if end < 0:
            return None
        raw = bytes(self.data[self.begin:end])
        self.begin = end
        return raw

    def reply(self, limit=None):
        until = time.monotonic() + (self.limit if limit is None else limit)
        while (raw := self.take()) is None:
            if not self.receive(until - time.monotonic()):
                raise Late
        return raw

    def call(self, *words):
        """The reply to one command, for what the fuzzer itself asks."""
        return self.calls([words])[0]

    def calls(self, commands):
        self.send(b"".join(pack([w if isinstance(w, bytes) else str(w).encode() for w in words]) for words in commands))
        return [self.reply() for _ in commands]
