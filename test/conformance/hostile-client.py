# SPDX-License-Identifier: MIT
"""A hostile client: hostile-client.py PORT [NAME...] attacks a server of TLS, whose every end must be an orderly one.

Each attack is a function of a port; it raises Failure if the server did not do what it must. SEED=N repeats a fuzzing
run. The last line says how many attacks were made.
"""

import os
import sys
import threading
import time

from tlslite.errors import TLSAbruptCloseError, TLSAlert, TLSError
from tlslite.messages import KeyUpdate

import hostile
from hostile import (ALERT, CHANGE, DATA, HANDSHAKE, REQUEST, Failure, dial, end_output, forge, handshake, hello, mutated,
                     padded, push, record, rest, shake)

ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def both(function):
    """An attack on TLS 1.2 and on TLS 1.3."""
    for version in hostile.VERSIONS:
        ATTACKS[f"{function.__name__}-{version}"] = lambda port, version=version: function(port, version)
    return function


def raw(port, data, piece=None, pause=None):
    """Send these bytes on a new connection, and read until the server closes it. Returns what it said."""
    with dial(port) as sock:
        push(sock, data, piece, pause)
        return rest(sock)


def must_close(port, data, piece=None):
    said = raw(port, data, piece)
    if said[:1] not in (b"", b"\x15", b"\x16"):
        raise Failure(f"the server said {said[:80]!r}")


def answers(connection):
    """The server answers a request on this connection."""
    connection.write(REQUEST)
    said = b""
    while b"Hello, World!\n" not in said:
        part = connection.read(max=65536, min=1)
        if not part:
            raise Failure(f"no answer but {bytes(said)!r}")
        said += part


def closes(connection):
    """The server closes this connection, whatever it says before that."""
    try:
        for _ in range(100000):
            if not connection.read(max=65536, min=1):
                return
    except (TLSError, TLSAlert, TLSAbruptCloseError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise Failure("the server does not close") from None
        return
    raise Failure("the server goes on without end")


def flood(connection, kind, body, times):
    """Send records until the server closes; raises Failure if it does not."""
    try:
        forge(connection, kind, body, times)
    except OSError:
        pass
    closes(connection)
    connection.sock.close()


# ---- Before the handshake ----


@attack
def silent(port):
    with dial(port) as sock:
        rest(sock)


@attack
def one_byte(port):
    with dial(port) as sock:
        push(sock, b"\x16")
        rest(sock)


@both
def slow_for_ever(port, version):
    """A byte each 50 ms, of a hello that never ends: the time for handshakes ends it."""
    with dial(port) as sock:
        sock.settimeout(0.05)
        data = record(HANDSHAKE, padded(hello(version), 60000)[:16384])
        for at in range(len(data)):
            if not push(sock, data[at:at + 1]):
                return
            try:
                if not sock.recv(1):
                    return
            except TimeoutError:
                pass
            except ConnectionError:
                return
            if at > 20 * hostile.PATIENCE:
                raise Failure("a slow handshake is never ended")


@both
def cut_anywhere(port, version):
    """A hello that ends after 1, 2, 3 ... bytes."""
    data = record(HANDSHAKE, hello(version), (3, 1))
    for length in range(1, len(data), 1 + len(data) // 60):
        with dial(port) as sock:
            push(sock, data[:length])
            end_output(sock)
            rest(sock)


@attack
def garbage(port):
    dice = hostile.new_dice(1)
    for size in (1, 5, 100, 16384, 65536):
        noise = bytes(dice.randrange(256) for _ in range(size))
        must_close(port, b"\x15" + noise)
        with dial(port) as sock:
            push(sock, b"\x16" + noise)
            end_output(sock)
            rest(sock)
    must_close(port, b"\x80\x2e\x01\x00\x02" + bytes(100))  # SSL 2


@attack
def record_versions(port):
    for version in ((0, 0), (2, 0), (4, 0), (5, 5), (255, 255)):
        must_close(port, record(HANDSHAKE, hello("1.3"), version))


@attack
def record_lengths(port):
    for length in (16385, 18433, 32768, 65535):
        must_close(port, record(HANDSHAKE, hello("1.3") + bytes(length), (3, 1), length))
    must_close(port, record(HANDSHAKE, b"", (3, 1)))


@attack
def record_kinds(port):
    for kind in (0, CHANGE, ALERT, DATA, 24, 99, 255):
        must_close(port, record(kind, b"\x01\x00", (3, 1)) * 100)


@attack
def messages_out_of_order(port):
    for kind in (0, 2, 4, 8, 11, 12, 13, 14, 15, 16, 20, 24, 67, 254):
        must_close(port, record(HANDSHAKE, handshake(kind, bytes(64)), (3, 1)))


@both
def hello_twice(port, version):
    must_close(port, record(HANDSHAKE, hello(version), (3, 1)) * 2)


@attack
def message_lengths(port):
    for length in (131397, 1 << 20, (1 << 24) - 1):
        must_close(port, record(HANDSHAKE, handshake(1, bytes(16000), length), (3, 1)) * 20)


@both
def huge_hello(port, version):
    """Hellos of 10 KB to 130 KB, in records and pieces of several sizes: the server answers or refuses."""
    for size, fragment, piece in ((10000, 16384, 1000), (60000, 16384, 100), (60000, 500, 7000), (60000, 64, 65536)):
        message = padded(hello(version), size)
        data = b"".join(record(HANDSHAKE, message[at:at + fragment], (3, 1)) for at in range(0, len(message), fragment))
        with dial(port) as sock:
            push(sock, data, piece)
            end_output(sock)
            if not rest(sock):
                raise Failure(f"no answer to a hello of {size} bytes in records of {fragment}")
    must_close(port, record(HANDSHAKE, padded(hello(version), 140000)[:16384], (3, 1)) * 9)


@both
def hello_of_one_byte_records(port, version):
    message = hello(version)
    with dial(port) as sock:
        push(sock, b"".join(record(HANDSHAKE, message[at:at + 1], (3, 1)) for at in range(len(message))))
        end_output(sock)
        rest(sock)


@attack
def empty_records_in_a_handshake(port):
    must_close(port, record(HANDSHAKE, hello("1.3")[:50], (3, 1)) + record(HANDSHAKE, b"", (3, 1)) * 5000)


@attack
def alerts_in_a_handshake(port):
    must_close(port, record(ALERT, b"\x01\x5a", (3, 1)) * 5000)


@attack
def changes_in_a_handshake(port):
    must_close(port, record(HANDSHAKE, hello("1.3"), (3, 1)) + record(CHANGE, b"\x01") * 5000)


@attack
def early_data(port):
    """Records that cannot be read, as those of 0-RTT, which the server must skip only up to a limit."""
    must_close(port, record(HANDSHAKE, hello("1.3"), (3, 1)) + record(DATA, bytes(16000)) * 100)


@attack
def finished_that_is_wrong(port):
    must_close(port, record(HANDSHAKE, hello("1.3"), (3, 1)) + record(CHANGE, b"\x01") + record(DATA, bytes(53)))


# ---- After the handshake ----


@both
def empty_records_and_a_request(port, version):
    """A few empty records are in order."""
    connection = shake(port, version)
    forge(connection, DATA, b"", 10)
    answers(connection)
    connection.close()


@both
def empty_records(port, version):
    flood(shake(port, version), DATA, b"", 5000)


@both
def renegotiation(port, version):
    connection = shake(port, version)
    forge(connection, HANDSHAKE, hello(version))
    closes_or_refuses(connection, version)


def closes_or_refuses(connection, version):
    """TLS 1.2 may answer renegotiation with a warning, and go on; it must not shake hands again."""
    try:
        if version == "1.2":
            connection.write(REQUEST)
        closes(connection)
    finally:
        connection.sock.close()


@both
def renegotiations(port, version):
    flood(shake(port, version), HANDSHAKE, hello(version), 2000)


@both
def hello_requests(port, version):
    flood(shake(port, version), HANDSHAKE, handshake(0), 5000)


@both
def warnings(port, version):
    flood(shake(port, version), ALERT, b"\x01\x5a", 5000)


@both
def alert_that_is_fatal(port, version):
    flood(shake(port, version), ALERT, b"\x02\x28", 1)


@both
def alert_of_three_bytes(port, version):
    flood(shake(port, version), ALERT, b"\x01\x00\x00", 1)


@both
def changes(port, version):
    flood(shake(port, version), CHANGE, b"\x01", 5000)


@both
def unknown_kinds(port, version):
    for kind in (24, 99):
        flood(shake(port, version), kind, b"\x01\x40\x00", 10)


@attack
def key_updates(port):
    """Each asks for one of the server's; nothing of that is read."""
    for request in (0, 1):
        connection = shake(port, "1.3")
        try:
            for _ in range(5000):
                forge(connection, HANDSHAKE, KeyUpdate().create(request).write())
                forge_key(connection)
        except OSError:
            pass
        closes(connection)
        connection.sock.close()


def forge_key(connection):
    """Take the next key for sending, as a KeyUpdate announces."""
    session = connection.session
    session.cl_app_secret, _ = connection._recordLayer.calcTLS1_3KeyUpdate_reciever(
        session.cipherSuite, session.cl_app_secret, session.sr_app_secret)


@attack
def key_update_that_is_wrong(port):
    for body in (b"\x02", b"", b"\x00\x00"):
        flood(shake(port, "1.3"), HANDSHAKE, handshake(24, body), 1)


@both
def record_that_was_changed(port, version):
    """A request whose last byte is another one: nothing of it counts."""
    connection = shake(port, version)
    sent = []
    sock = connection.sock

    class Changed:
        def send(self, data):
            sent.append(bytes(data))
            return len(data)

        sendall = send

        def flush(self):
            pass

    layer = connection._recordLayer._recordSocket
    keep, layer.sock = layer.sock, Changed()
    connection.write(REQUEST)
    layer.sock = keep
    data = bytearray(b"".join(sent))
    data[-1] ^= 1
    sock.sendall(data)
    closes(connection)
    sock.close()


@both
def plain_records(port, version):
    connection = shake(port, version)
    connection.sock.sendall(record(DATA, REQUEST))
    closes(connection)
    connection.sock.close()


@both
def versions_of_records(port, version):
    connection = shake(port, version)
    connection.sock.sendall(record(DATA, bytes(60), (9, 9)))
    closes(connection)
    connection.sock.close()


@both
def cut_in_a_record(port, version):
    for head in (b"\x17", b"\x17\x03\x03\x40", b"\x17\x03\x03\x40\x00" + bytes(100)):
        connection = shake(port, version)
        connection.sock.sendall(head)
        end_output(connection.sock)
        closes(connection)
        connection.sock.close()


@both
def requests_after_the_end(port, version):
    connection = shake(port, version)
    forge(connection, ALERT, b"\x01\x00")
    try:
        forge(connection, DATA, REQUEST, 100)
    except OSError:
        pass
    closes(connection)
    connection.sock.close()


@both
def never_reads(port, version):
    """Many requests, no reading; then it goes."""
    connection = shake(port, version)
    connection.sock.settimeout(1)
    try:
        for _ in range(2000):
            forge(connection, DATA, REQUEST * 20)
    except OSError:
        pass
    connection.sock.close()


@both
def fuzz(port, version):
    """Hellos, and records after the handshake, with a few bytes changed."""
    dice = hostile.new_dice(int(os.environ["SEED"]))
    plain = record(HANDSHAKE, hello(version), (3, 1))
    for _ in range(150):
        with dial(port) as sock:
            push(sock, mutated(plain, dice), dice.choice((None, None, 1, 7, 64)))
            if dice.randrange(2):
                end_output(sock)
                rest(sock)
    for _ in range(25):
        connection = shake(port, version)
        data = mutated(dice.choice((record(DATA, bytes(40)), record(ALERT, b"\x01\x00"), record(HANDSHAKE, bytes(24)))), dice)
        push(connection.sock, data)
        end_output(connection.sock)
        closes(connection)
        connection.sock.close()


def run(name, port, failures):
    began = time.monotonic()
    try:
        ATTACKS[name](port)
    except Failure as failure:
        failures.append(f"{name}: {failure}")
    except Exception as error:  # an attack that cannot be made is a failure, too
        failures.append(f"{name}: {type(error).__name__}: {error}")
    print(f"{name} {time.monotonic() - began:.1f}", flush=True)


def main():
    port = int(sys.argv[1])
    os.environ.setdefault("SEED", str(int(time.time())))
    names = sys.argv[2:] or list(ATTACKS)
    failures = []
    print("seed", os.environ["SEED"], flush=True)
    # Those that wait for the server's clock beside all others.
    waiting = [n for n in names if n.startswith(("silent", "one_byte", "slow_for_ever", "never_reads"))]
    threads = [threading.Thread(target=run, args=(n, port, failures)) for n in waiting]
    for thread in threads:
        thread.start()
    for name in names:
        if name not in waiting:
            run(name, port, failures)
    for thread in threads:
        thread.join()
    for failure in failures:
        print("failure:", failure)
    print(f"{len(names)} attacks, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
