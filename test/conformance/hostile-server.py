# SPDX-License-Identifier: MIT
"""A hostile server: hostile-server.py CERTIFICATE KEY [SEED] listens at a port for each of its tricks.

It prints a line for each trick, "PORT NAME", then "ready". A trick is a function of a connected socket. Those in GOOD
send a whole reply all the same, so a client may take it; after all others a client that counts a reply is wrong.
"""

import os
import socket
import struct
import sys
import threading
import time

from tlslite.api import TLSConnection, X509CertChain, parsePEMKey
from tlslite.messages import KeyUpdate

import hostile
from hostile import ALERT, CHANGE, DATA, HANDSHAKE, end_output, forge, handshake, mutated, push, record, rest

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, World!\n"
TRICKS = {}
GOOD = set()


def trick(function):
    TRICKS[function.__name__] = function
    return function


def both(function):
    for version in hostile.VERSIONS:
        TRICKS[f"{function.__name__}-{version}"] = lambda sock, version=version: function(sock, version)
    return function


def good(function):
    GOOD.update([function.__name__] + [f"{function.__name__}-{version}" for version in hostile.VERSIONS])
    return function


class Wire:
    """A socket whose output goes through a function of the bytes, which returns the pieces to send."""

    def __init__(self, sock, change):
        self.sock = sock
        self.change = change

    def send(self, data):
        for piece in self.change(bytes(data)):
            self.sock.sendall(piece)
        return len(data)

    sendall = send

    def __getattr__(self, name):
        return getattr(self.sock, name)


def shake(sock, version, change=None):
    """A connection whose handshake is done."""
    connection = TLSConnection(Wire(sock, change) if change else sock)
    connection.ignoreAbruptClose = True
    wanted = hostile.settings(version)
    wanted.ticketKeys = [bytes(32)]
    connection.handshakeServer(certChain=CHAIN, privateKey=KEY, settings=wanted, alpn=[bytearray(b"http/1.1")])
    return connection


def asked(sock, version, change=None):
    """A connection on which a request came."""
    connection = shake(sock, version, change)
    connection.read(max=65536, min=1)
    return connection


def flood(connection, kind, body, times=20000):
    forge(connection, kind, body, times)
    rest(connection.sock)


# ---- Instead of a handshake ----


@trick
def nothing(sock):
    rest(sock)


@trick
def end_at_once(sock):
    pass


@trick
def reset_at_once(sock):
    sock.recv(1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@trick
def garbage(sock):
    sock.recv(65536)
    push(sock, bytes(range(256)) * 1000)


@trick
def plain_http(sock):
    sock.recv(65536)
    push(sock, REPLY)


@trick
def record_that_is_too_long(sock):
    sock.recv(65536)
    push(sock, record(HANDSHAKE, bytes(70000), (3, 3), 65535))
    rest(sock)


@trick
def record_of_another_version(sock):
    sock.recv(65536)
    push(sock, record(HANDSHAKE, handshake(2, bytes(70)), (9, 9)))
    rest(sock)


@trick
def message_that_is_too_long(sock):
    sock.recv(65536)
    push(sock, record(HANDSHAKE, handshake(2, bytes(16000), 0xFFFFFF)) * 100)
    rest(sock)


@trick
def empty_records(sock):
    sock.recv(65536)
    push(sock, record(HANDSHAKE) * 20000)
    rest(sock)


@trick
def warnings(sock):
    sock.recv(65536)
    push(sock, record(ALERT, b"\x01\x5a") * 20000)
    rest(sock)


@trick
def changes(sock):
    sock.recv(65536)
    push(sock, record(CHANGE, b"\x01") * 20000)
    rest(sock)


@trick
def hello_requests(sock):
    sock.recv(65536)
    push(sock, record(HANDSHAKE, handshake(0)) * 20000)
    rest(sock)


@trick
def one_alert(sock):
    sock.recv(65536)
    push(sock, record(ALERT, b"\x02\x28"))
    rest(sock)


@trick
def slow_for_ever(sock):
    sock.recv(65536)
    for byte in record(HANDSHAKE, handshake(2, bytes(16000))):
        if not push(sock, bytes([byte])):
            return
        time.sleep(0.05)


# ---- In the handshake ----


@both
@good
def byte_by_byte(sock, version):
    """A whole handshake and a reply, a byte at a time."""
    connection = asked(sock, version, lambda data: (data[at:at + 1] for at in range(len(data))))
    connection.write(REPLY)
    connection.close()


@both
def cut_anywhere(sock, version):
    """The handshake ends after 1, 90, 179 ... bytes, more with each connection."""
    count = cut_anywhere.count = getattr(cut_anywhere, "count", 0) + 1
    left = [1 + 89 * (count - 1) % 1500]

    def cut(data):
        part = data[:left[0]]
        left[0] -= len(part)
        yield part
        if left[0] == 0:
            end_output(sock)
            raise hostile.Stop

    shake(sock, version, cut)


@both
def fuzz(sock, version):
    """A record of the server, any of them, has a few other bytes."""
    with LOCK:
        at, seed = DICE.randrange(8), DICE.randrange(1 << 30)
    number = [0]

    def change(data):
        number[0] += 1
        yield mutated(data, hostile.new_dice(seed)) if number[0] == at else data

    connection = asked(sock, version, change)
    connection.write(REPLY)
    connection.close()


GOOD.update(["fuzz-1.2", "fuzz-1.3"])  # a record after the reply may be the one


# ---- After the handshake ----


@both
def no_reply(sock, version):
    rest(asked(sock, version).sock)


@both
def end_without_a_reply(sock, version):
    asked(sock, version).close()


@both
def cut_reply(sock, version):
    """The reply has no length, and the connection ends without close_notify."""
    connection = asked(sock, version)
    connection.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nHello, Wor")
    end_output(sock)
    rest(sock)


@both
def empty_records_for_ever(sock, version):
    flood(asked(sock, version), DATA, b"")


@both
def hello_requests_for_ever(sock, version):
    flood(asked(sock, version), HANDSHAKE, handshake(0))


@both
def warnings_for_ever(sock, version):
    flood(asked(sock, version), ALERT, b"\x01\x5a")


@both
def changes_for_ever(sock, version):
    flood(asked(sock, version), CHANGE, b"\x01")


@both
def unknown_kind(sock, version):
    flood(asked(sock, version), 99, b"?", 1)


@both
def plain_record(sock, version):
    asked(sock, version)
    push(sock, record(DATA, REPLY))
    rest(sock)


@both
def reply_that_was_changed(sock, version):
    is_spoilt = []

    def change(data):
        yield data[:-1] + bytes([data[-1] ^ 1]) if is_spoilt else data

    connection = asked(sock, version, change)
    is_spoilt.append(True)
    connection.write(REPLY)
    rest(sock)


@trick
def key_updates(sock):
    connection = asked(sock, "1.3")
    session = connection.session
    for _ in range(20000):
        forge(connection, HANDSHAKE, KeyUpdate().create(1).write())
        _, session.sr_app_secret = connection._recordLayer.calcTLS1_3KeyUpdate_reciever(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret)
    rest(sock)


@trick
def tickets(sock):
    """Tickets of 16 KB, one after the other."""
    ticket = struct.pack(">II", 7200, 1) + b"\x01\x00" + struct.pack(">H", 16000) + bytes(16000) + b"\x00\x00"
    flood(asked(sock, "1.3"), HANDSHAKE, handshake(4, ticket), 2000)


@trick
def endless_interim_replies(sock):
    connection = asked(sock, "1.3")
    for _ in range(20000):
        connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    rest(sock)


def serve(name, listener):
    def one(sock):
        sock.settimeout(hostile.PATIENCE)
        try:
            TRICKS[name](sock)
        except Exception as error:  # the client went, or tlslite-ng noticed that it was spoilt
            if os.environ.get("DEBUG"):
                __import__("traceback").print_exc()
        sock.close()

    while True:
        sock, _ = listener.accept()
        threading.Thread(target=one, args=(sock,), daemon=True).start()


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def main():
    for name in TRICKS:
        listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        print(listener.getsockname()[1], name, "good" if name in GOOD else "bad")
        threading.Thread(target=serve, args=(name, listener), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    CHAIN = X509CertChain()
    CHAIN.parsePemList(read(sys.argv[1]))
    KEY = parsePEMKey(read(sys.argv[2]), private=True)
    LOCK = threading.Lock()
    DICE = hostile.new_dice(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    main()
