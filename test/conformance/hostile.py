# SPDX-License-Identifier: MIT
"""What the hostile peers of TLS share: records, hellos, and connections of tlslite-ng whose records can be forged."""

import random
import socket
import struct
import time

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.messages import Message

CHANGE, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
VERSIONS = {"1.2": (3, 3), "1.3": (3, 4)}
PATIENCE = 120  # seconds until the other end counts as hanging


class Failure(Exception):
    """The other end did not do what it must."""


class Stop(Exception):
    """Ends a handshake of tlslite-ng when its first flight is known."""


def record(kind, body=b"", version=(3, 3), length=None):
    return bytes([kind, *version]) + struct.pack(">H", len(body) if length is None else length) + bytes(body)


def handshake(kind, body=b"", length=None):
    return bytes([kind]) + (len(body) if length is None else length).to_bytes(3, "big") + bytes(body)


def settings(version):
    wanted = HandshakeSettings()
    wanted.minVersion = wanted.maxVersion = VERSIONS[version]
    return wanted


class Tap:
    """A socket that keeps what is sent, and ends the handshake when an answer is read."""

    def __init__(self):
        self.sent = b""

    def send(self, data):
        self.sent += bytes(data)
        return len(data)

    sendall = send

    def recv(self, _):
        raise Stop

    def ignore(self, *_):
        pass

    setsockopt = flush = close = ignore


def hello(version):
    """The handshake message of a good ClientHello."""
    tap = Tap()
    try:
        TLSConnection(tap).handshakeClientCert(settings=settings(version), serverName="localhost")
    except Stop:
        pass
    return tap.sent[5:]


def padded(message, size):
    """A ClientHello with an extension of padding (RFC 7685), so that it has about `size` bytes."""
    body = message[4:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    extensions = body[at + 2:]
    while size > len(body):
        part = min(60000, size - len(body))
        extensions += struct.pack(">HH", 21, part) + bytes(part)
        size -= part + 4
    return handshake(1, body[:at] + struct.pack(">H", len(extensions) & 0xFFFF) + extensions)


def dial(port):
    sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(PATIENCE)
    return sock


def shake(port, version):
    """A connection whose handshake is done."""
    connection = TLSConnection(dial(port))
    connection.ignoreAbruptClose = True
    connection.handshakeClientCert(settings=settings(version), serverName="localhost")
    return connection


def forge(connection, kind, body, times=1):
    """Send records of this kind, encrypted as the next ones of the connection, that tlslite-ng would not send."""
    for _ in range(times):
        for _ in connection._recordLayer.sendRecord(Message(kind, bytearray(body))):
            pass


def push(sock, data, piece=None, pause=None):
    """Send raw bytes; the other end may close before the last one. Returns whether all were taken."""
    try:
        for at in range(0, len(data), piece or len(data) or 1):
            sock.sendall(data[at:at + (piece or len(data))])
            if pause:
                time.sleep(pause)
        return True
    except (BrokenPipeError, ConnectionError):
        return False


def end_output(sock):
    """Send the end; the other end may have reset the connection."""
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def rest(sock):
    """Read until the other end closes. Returns its bytes."""
    got = b""
    try:
        while True:
            part = sock.recv(65536)
            if not part:
                return got
            got = (got + part)[-65536:]
    except ConnectionError:
        return got
    except (socket.timeout, TimeoutError):
        raise Failure("the other end neither answers nor closes") from None


def mutated(data, dice):
    """The data with a few bytes changed, taken out or put in, perhaps cut."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        at = dice.randrange(len(out) + 1)
        what = dice.randrange(5)
        if what == 0 and at < len(out):
            out[at] ^= 1 << dice.randrange(8)
        elif what == 1 and at < len(out):
            out[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
        elif what == 2:
            out[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9)))
        elif what == 3:
            del out[at:at + dice.randrange(1, 9)]
        elif len(out) > 1:
            del out[dice.randrange(1, len(out)):]
    return bytes(out)


def new_dice(seed):
    return random.Random(seed)
