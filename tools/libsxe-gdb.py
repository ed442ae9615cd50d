# SPDX-License-Identifier: MIT
#
# How gdb shows sockets, buffers, sets of chunks and pools. make install puts this file where gdb looks for it when it loads
# libsxe.so.0; a program with the static library says `source libsxe.so.0-gdb.py`. It only reads memory, never calls the
# program, so it works with core dumps. It needs the library's debugging information.

import gdb
import gdb.printing

NONE = 0xFFFFFFFF
TEXT_MOST = 64  # bytes of a buffer that are shown


def enumerator(value, name, prefix):
    """The name of an enumerator without its prefix, or the number."""
    try:
        for field in gdb.lookup_type("enum " + name).fields():
            if field.enumval == value:
                return field.name[len(prefix):]
    except gdb.error:
        pass
    return "state %d" % value


def text_at(address, length):
    """The first bytes at an address as a quoted text."""
    data = gdb.selected_inferior().read_memory(address, min(length, TEXT_MOST)).tobytes()
    text = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else "\\x%02x" % b if b not in (10, 13)
                   else "\\n" if b == 10 else "\\r" for b in data)
    return '"%s"%s' % (text, "..." if length > TEXT_MOST else "")


class Fields:
    """A printer with a summary, whose children are the fields of the struct."""

    def __init__(self, value):
        self.value = value

    def children(self):
        return ((f.name, self.value[f]) for f in self.value.type.fields() if f.name is not None)


class Buffer(Fields):
    def to_string(self):
        unread = int(self.value["used"]) - int(self.value["taken"])
        room = int(self.value["size"]) - unread
        chunk = int(self.value["chunk"])
        said = "%d bytes unread, room for %d" % (unread, room)
        if chunk != NONE:
            said += ", chunk %d" % chunk
        if unread > 0:
            said += ": " + text_at(int(self.value["base"]) + int(self.value["taken"]), unread)
        return said


class Chunks(Fields):
    def to_string(self):
        number = int(self.value["number"])
        return "chunks '%s': %d of %d taken, each of %d bytes" % (
            self.value["name"].string(), number - int(self.value["free_number"]), number, int(self.value["size"]))


class Socket(Fields):
    def to_string(self):
        said = "socket %d, %s" % (int(self.value["id"]), enumerator(int(self.value["state"]), "sxe_state", "SXE_STATE_"))
        if int(self.value["fd"]) >= 0:
            said += ", fd %d" % int(self.value["fd"])
        if int(self.value["error"]) != 0:
            said += ", error %d" % int(self.value["error"])
        return said + ", " + Buffer(self.value["in"]).to_string()


def counts_of(header):
    """How many elements are in each state of a pool."""
    number, states = int(header["number"]), int(header["states"])
    sharing = header["sharing"]
    node = gdb.lookup_type("struct sxe__pool_node").pointer()
    if int(sharing) != 0:
        nodes, shards = sharing.dereference()["nodes"], int(sharing.dereference()["shard_mask"]) + 1
    else:
        nodes, shards = (header.address + 1).cast(gdb.lookup_type("char").pointer()) + int(header["nodes_offset"]), 1
    nodes = nodes.cast(node)
    return [sum(int((nodes + number + state * shards + shard).dereference()["count"]) for shard in range(shards))
            for state in range(states)]


class Pool(Fields):
    def to_string(self):
        return "%s pool '%s' of %d elements of %d bytes; in each state: %s" % (
            "shared" if int(self.value["sharing"]) != 0 else "private", self.value["name"].string(),
            int(self.value["number"]), int(self.value["element_size"]), ", ".join(str(n) for n in counts_of(self.value)))


def header_of(array):
    """The header of a pool in front of its array."""
    header = gdb.lookup_type("struct sxe__pool_header").pointer()
    return (array.cast(header) - 1).dereference()


class PoolCommand(gdb.Command):
    """sxe-pool ARRAY: show the pool of this array, and how many of its elements are in each state."""

    def __init__(self):
        super().__init__("sxe-pool", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if argument == "":
            raise gdb.GdbError("usage: sxe-pool ARRAY, which is what sxe_pool_new or sxe_pool_open returned")
        header = header_of(gdb.parse_and_eval(argument))
        if int(header["magic"]) != 0x4C4F4F50:
            raise gdb.GdbError(argument + " is not the array of a pool")
        print(Pool(header).to_string())


class SocketsCommand(gdb.Command):
    """sxe-sockets [N]: show the sockets of this thread's loop, at most N (20) of them."""

    def __init__(self):
        super().__init__("sxe-sockets", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        most = int(argument) if argument else 20
        context = gdb.parse_and_eval("sxe__context")
        if int(context["sockets"]) == 0:
            raise gdb.GdbError("this thread has no loop: sxe_init has not been called in it")
        sockets, stride = context["sockets"], int(context["stride"])
        socket = gdb.lookup_type("struct sxe").pointer()
        shown = found = 0
        for i in range(int(header_of(sockets)["number"])):
            one = (sockets + i * stride).cast(socket).dereference()
            if int(one["state"]) == 0:
                continue
            found += 1
            if shown < most:
                shown += 1
                print(Socket(one).to_string())
        print("%d sockets in use of %d%s" % (found, int(header_of(sockets)["number"]),
                                             "" if found == shown else ", %d shown" % shown))


def register(objfile):
    printers = gdb.printing.RegexpCollectionPrettyPrinter("libsxe")
    printers.add_printer("sxe", "^sxe$", Socket)
    printers.add_printer("sxe_buffer", "^sxe_buffer$", Buffer)
    printers.add_printer("sxe_chunks", "^sxe_chunks$", Chunks)
    printers.add_printer("sxe__pool_header", "^sxe__pool_header$", Pool)
    gdb.printing.register_pretty_printer(objfile, printers, replace=True)


register(gdb.current_objfile())
PoolCommand()
SocketsCommand()
