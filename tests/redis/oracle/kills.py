"""Events in which the module's server ends, and what it must have afterwards: nothing answered is lost, no unit is torn.

  ["kill"]                          kill -9 when all was answered; the server starts again with its pool
  ["killed", COMMANDS, SECONDS]     kill -9 so long after they were sent: what stock has after some number of them, and
                                    at least those that were answered
  ["torn", HOW, COMMANDS, AT]       the server ends in the middle of one unit, before its command AT: all of it or nothing.
                                    HOW: kill in EXEC, kill in script, shutdown in script
Stock Redis stays, and has what the module's server must have.
"""

import contextlib
import time

from . import state, wire

WAIT = b"local t = redis.call('TIME') repeat local u = redis.call('TIME') until (u[1] - t[1]) * 1000000 + u[2] - t[2] > "
IN_UNIT_US = 400000
SHUTDOWN_US = 5000000


class Kills:
    def restart(self):
        """The module's server, with a kill before it if it still runs. All connections go, on both sides."""
        module, stock = self.pair.module, self.pair.stock
        self.close_clients()
        module.kill()
        self.control.pop(module, None)
        try:
            module.start()
        except RuntimeError as why:
            raise self.difference("ended", note=f"after a kill: {why}") from None
        for server in (module, stock):
            self.prepare(server)
            self.of_server(server, state.let_go)  # a pool that is opened has none
            self.of_server(server, drop_streams)

    def close_clients(self):
        """Also those that wait for a key, which would take what comes."""
        for client in self.clients:
            client.close()
        for server in (self.pair.stock, self.pair.module):
            if server in self.control and not server.has_ended():
                self.settle(server)

    def do_kill(self):
        self.restart()
        self.do_state()

    def drop_all_streams(self):
        """Before commands that the module's server gets with them, and stock after the kill."""
        for server in (self.pair.stock, self.pair.module):
            self.of_server(server, drop_streams)

    def alone(self, server):
        return contextlib.closing(server.connect(self.limit))

    def do_killed(self, commands, seconds):
        self.close_clients()
        self.drop_all_streams()
        module, answered, begun = self.pair.module, 0, time.monotonic()
        with self.alone(module) as connection:
            connection.send(b"".join(map(wire.pack, commands)))
            time.sleep(seconds)
            module.kill()
            try:
                while True:
                    connection.reply()
                    answered += 1
            except (wire.Gone, wire.Late):
                pass
        self.restart()
        has = self.of_server(module, state.read)
        with self.alone(self.pair.stock) as connection:
            for done in range(len(commands) + 1):
                if done:
                    connection.call(*commands[done - 1])
                if done >= answered:
                    differs = state.difference(self.of_server(self.pair.stock, state.read), has, later_than(begun))
                    if not differs:
                        return
        raise self.torn(commands, differs, f"{answered} of {len(commands)} commands were answered before the kill")

    def do_torn(self, how, commands, at):
        self.close_clients()
        self.drop_all_streams()
        module, begun = self.pair.module, time.monotonic()
        with self.alone(module) as connection:
            in_script = how.endswith("script")
            pause = SHUTDOWN_US if how.startswith("shutdown") else IN_UNIT_US
            connection.send(script(commands, at, pause) if in_script else exec_of(commands, at, pause))
            time.sleep(IN_UNIT_US / 2e6)
            if how.startswith("shutdown"):
                shut_down(module)
            module.kill()
        self.restart()
        has = self.of_server(module, state.read)
        if not state.difference(self.of_server(self.pair.stock, state.read), has):
            return
        with self.alone(self.pair.stock) as connection:
            connection.send(script(commands, -1, 0) if in_script else exec_of(commands, -1, 0))
            for _ in range(1 if in_script else len(commands) + 2):
                connection.reply()
        differs = state.difference(self.of_server(self.pair.stock, state.read), has, later_than(begun))
        if differs:
            raise self.torn(commands, differs, how)

    def torn(self, commands, differs, how):
        told = b"; ".join(b" ".join(w for w in words if isinstance(w, bytes)) for words in commands)
        database, key, stock, module = differs
        found = self.difference("torn", (how.encode(), told), state.show(stock), state.show(module),
                                f"key {key[:40]!r} of database {database} has neither what it had before nor what it has after")
        found.aspect = "DEBUG RELOAD" if b"DEBUG RELOAD" in told else ""
        return found


def later_than(begun):
    """How much later stock's times may be, in milliseconds: it gets the commands after the other server's restart."""
    return state.LATER_MS + 1000 * (time.monotonic() - begun)


def exec_of(commands, at, pause_us):
    words = [(b"MULTI",), *commands, (b"EXEC",)]
    if at >= 0:
        words.insert(at + 1, (b"DEBUG", b"SLEEP", b"%f" % (pause_us / 1e6)))
    return b"".join(map(wire.pack, words))


def script(commands, at, pause_us):
    """Each command by pcall; the pause is in the script, which stays busy."""
    lines, arguments = [], []
    for number, words in enumerate(commands):
        if number == at:
            lines.append(WAIT + b"%d" % pause_us)
        lines.append(b"redis.pcall(" + b", ".join(b"ARGV[%d]" % (len(arguments) + i + 1) for i in range(len(words))) + b")")
        arguments += words
    return wire.pack((b"EVAL", b" ".join(lines), b"0", *arguments))


def shut_down(server):
    with contextlib.closing(server.connect(5)) as other, contextlib.suppress(wire.Gone, wire.Late):
        other.call("SHUTDOWN", "NOSAVE")
    server.has_ended(5)


def drop_streams(ask):
    """They stay Redis' own, so a kill takes them."""
    for database in range(state.DATABASES):
        keys = [wire.text(n) for n in wire.elements(ask.calls([("SELECT", database), ("KEYS", "*")])[1])]
        kinds = ask.calls([("TYPE", key) for key in keys])
        ask.calls([("DEL", key) for key, kind in zip(keys, kinds) if kind == b"+stream\r\n"])
