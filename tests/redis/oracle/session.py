"""Runs events on both servers, and compares every answer: how many there are, and what each says.

An event is a list, as a line of a replay file has it (JSON; bytes are text in Latin-1):
  ["do", CLIENT, WORDS, INNER]   a command; INNER: the commands whose answers a script gives
  ["sleep", MS]                  time passes
  ["state"]                      all of both servers is compared
and those of kills.py and limits.py. After a command comes ECHO of a token that is used once, so an answer too many or too few is seen
at the command that gave it; within MULTI each command has one answer, and the next token tells.
"""

import itertools
import re
import time

from . import payload, state, wire
from .grammar import BLOCKING
from .kills import Kills
from .limits import Limits

MOST_IN_A_BATCH = 40
# May put one value in the place of another one. Where a client waits, they end a batch: what follows may hide that stock did not serve it.
OVERWRITING = re.compile(rb"(?i).*store.*|restore|copy|rename|sort|georadius.*|exec|eval.*|fcall.*")
NOT_SORTED = b"can't be converted into double"
RULES = {
    "some_keys": (b"~*1", b"~by", b"~get", b"~limit", b"~store", b"&*", b"+@all"),
    "reads": (b"~*", b"&*", b"+@all", b"-@write"),
    "not_set": (b"~*", b"&*", b"+@all", b"-set", b"-zadd", b"-eval", b"-rename", b"-sort", b"-expire"),
    "selected": (b"~*1", b"-@all", b"+@connection", b"+@transaction", b"+@read", b"(~*2 +@write)"),
    "no_keys": (b"resetkeys", b"+@all"),
}
LIBRARY = (b"#!lua name=differential\nlocal function run(keys, args)\n  local told = {}\n  for line in string.gmatch(args[1], '[^;]+') do\n"
           b"    local words = {}\n    for word in string.gmatch(line, '%S+') do words[#words + 1] = word end\n"
           b"    told[#told + 1] = redis.call(unpack(words))\n  end\n  return told\nend\n"
           b"redis.register_function('calls', run)\nredis.register_function{function_name='reads', callback=run, flags={'no-writes'}}\n")


class Finding(Exception):
    """A difference. kind: answer, refusal, count, hang, ended, closed, state, torn, rights, memory, slow."""

    def __init__(self, kind, event=-1, words=(), stock=None, module=None, note=""):
        super().__init__(kind)
        self.kind, self.event, self.words, self.stock, self.module, self.note = kind, event, words, stock, module, note
        self.aspect = ""  # of a state: which types, and whether a time differs
        self.seen_at = event  # the event after which it was seen
        self.whole = (stock or "", module or "")  # where those are shortened

    @property
    def name(self):
        return self.words[0].decode("latin-1").lower() if self.words else ""

    def signature(self):
        """What is the same if the same fault is met again: the kind, the command, how refusals begin."""
        return self.kind, self.name, self.aspect, *(told[:40] if told and told[:1] == "-" else "" for told in (self.stock, self.module))


class StockFailed(Exception):
    """Stock Redis has ended, hangs, or has a fault of its own: the rest of the episode is not compared."""


class Client:
    def __init__(self, number, rules, protocol):
        self.number, self.rules, self.protocol = number, rules, protocol
        self.stock = self.module = None
        self.queue = None  # after MULTI: what was queued
        self.expects_multi = False
        self.database = 0
        self.pending = None
        self.was_reset = False  # so the default user's

    def close(self):
        for connection in (self.stock, self.module):
            if connection is not None:
                connection.close()
        self.__init__(self.number, self.rules, self.protocol)


class Batch:
    """Commands of one connection that were sent together. items: (event, words, inner)."""

    tokens = itertools.count(1)

    def __init__(self, items):
        self.items, self.marks, self.stock, self.module, self.sent = items, [], [], [], 0

    def is_whole(self, replies):
        if self.marks[-1] is not None and replies and replies[-1] == self.marks[-1]:
            return True
        return len(replies) == self.sent

    def parted(self, replies):
        """The answers of each command."""
        parts, at = [], 0
        for mark in self.marks:
            if mark is None:
                parts.append(replies[at:at + 1])
                at += 1
                continue
            end = replies.index(mark, at) if mark in replies[at:] else len(replies)
            parts.append(replies[at:end])
            at = end + 1
        if replies[at:]:
            parts[-1] = parts[-1] + replies[at:]
        return parts


class Session(Kills, Limits):
    def __init__(self, pair, judge, limit=10):
        self.pair, self.judge, self.limit = pair, judge, limit
        self.clients, self.batch, self.batch_client = [], [], None
        self.control, self.users, self.ids, self.granted = {}, {}, {}, {}  # by server; by server; by connection; by server and category
        self.scripts = ()  # that EVALSHA finds
        self.checks_times = False  # of large commands
        self.commands = 0
        self.not_compared = 0  # episodes that stock Redis did not end
        self.kept = {}  # differences after which the episode goes on
        self.event = -1

    # --- the beginning of an episode ---

    def begin(self, header):
        self.kept = {}
        for client in self.clients:
            client.close()
        self.clients = [Client(i, *of) for i, of in enumerate(header["clients"])]
        self.batch = []
        for server in (self.pair.stock, self.pair.module):
            self.reset(server)

    def forget(self):
        """Ends both servers and all connections; the next episode begins with new ones."""
        for client in self.clients:
            client.close()
        for server in (self.pair.stock, self.pair.module):
            server.kill()
        self.control.clear()

    def reset(self, server):
        if server.process is None or server.has_ended():
            server.kill()
            server.start()
            self.control.pop(server, None)
        self.prepare(server)
        told = self.control[server].calls([(b"FLUSHALL",)])
        if told != [b"+OK\r\n"]:
            raise StockFailed(f"{server.name}: {told}")

    def prepare(self, server):
        """Settings, users and functions, as each episode begins."""
        if server not in self.control:
            self.control[server], self.users[server] = server.connect(30), {"default"}
            self.learn_rights(server)
        users = {c.rules for c in self.clients} - self.users[server]
        self.users[server] |= users
        told = self.control[server].calls([
            (b"SELECT", b"0"), (b"CONFIG", b"SET", b"maxmemory", b"0", b"maxmemory-policy", b"noeviction"),
            (b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"),  # else DBSIZE tells how far each has got
            *[(b"ACL", b"SETUSER", name.encode(), b"reset", b"on", b"nopass", *self.rules(name, server)) for name in sorted(users)],
            (b"FUNCTION", b"LOAD", b"REPLACE", LIBRARY), *[(b"SCRIPT", b"LOAD", script) for script in self.scripts]])
        wrong = [t for t in told[:-1 - len(self.scripts)] if t != b"+OK\r\n"]
        if wrong:
            raise StockFailed(f"{server.name}: {wrong}")

    def learn_rights(self, server):
        """Redis 7.0 knows no categories of a module's commands, and no second names of its own: where a rule gives or takes a
        command or a category, the module's names follow."""
        ask, own = self.control[server], self.own_commands(server)
        # A category names subcommands one by one: object|encoding.
        for category in (b"@read", b"@write"):
            names = sorted({wire.text(n).split(b"|")[0] for n in wire.elements(ask.call("ACL", "CAT", category[1:]))})
            self.granted[server, category] = [b"stele." + name for name in names if b"stele." + name in own]
        self.granted.update({(server, name[6:]): [name] for name in own})

    def own_commands(self, server):
        return {wire.text(n) for n in wire.elements(self.control[server].call("COMMAND", "LIST", "FILTERBY", "MODULE", "stele"))}

    def rules(self, name, server):
        """The words of ACL SETUSER."""
        def with_own(word):
            return b" ".join([word, *[word[:1] + other for other in self.granted.get((server, word[1:]), ())]])
        for rule in RULES[name]:
            words = b" ".join(map(with_own, rule.strip(b"()").split()))
            yield from [b"(" + words + b")"] if rule.startswith(b"(") else words.split()

    def open(self, client):
        for side, server in (("stock", self.pair.stock), ("module", self.pair.module)):
            connection = server.connect(self.limit)
            if client.rules != "default":
                connection.call("AUTH", client.rules, "x")
            if client.protocol == 3:
                connection.call("HELLO", "3")
            self.ids[connection] = connection.call("CLIENT", "ID")[1:-2]
            setattr(client, side, connection)

    # --- events ---

    def run(self, events):
        for number, event in enumerate(events):
            self.event = number
            if event[0] == "do":
                self.add(number, self.clients[event[1]], event[2], event[3] if len(event) > 3 else ())
            else:
                self.flush()
                getattr(self, "do_" + event[0])(*event[1:])
        self.event = len(events)
        self.flush()
        self.do_state()

    def add(self, number, client, words, inner):
        if client.pending is not None:
            return  # it waits
        blocks = words[0].lower() in BLOCKING and not client.expects_multi
        if self.batch and (client is not self.batch_client or blocks or len(self.batch) == MOST_IN_A_BATCH or any(isinstance(w, dict) for w in words)):
            self.flush()
        if words[0].lower() == b"dbsize":
            self.flush()
            self.let_go()
        self.batch.append((number, words, inner))
        self.batch_client = client
        self.note_multi(client, words)
        if OVERWRITING.fullmatch(words[0]) and any(other.pending is not None for other in self.clients):
            self.flush()
        if blocks:
            self.flush(may_block=words[BLOCKING[words[0].lower()]:][:1] == [b"0"])

    @staticmethod
    def note_multi(client, words):
        name = words[0].lower()
        if name == b"multi" and len(words) == 1:
            client.expects_multi = True
        elif name in (b"exec", b"discard", b"reset") and len(words) == 1:
            client.expects_multi = False

    def do_sleep(self, milliseconds):
        time.sleep(milliseconds / 1000)
        self.let_go()

    def let_go(self):
        # A time that was to come may have passed before the second server got it. That server has deleted the key at once, as the
        # module does with a time that has passed, and DBSIZE of the first still counts it.
        for server in (self.pair.stock, self.pair.module):
            self.of_server(server, state.let_go)

    def do_state(self):
        states = [self.of_server(server, lambda ask: state.read(ask)) for server in (self.pair.stock, self.pair.module)]
        differs = state.difference(*states)
        if differs:
            db, key, stock, module = differs
            found = self.difference("state", (), state.show(stock), state.show(module), f"key {key[:40]!r} of database {db}")
            found.whole = state.show(stock, 1 << 20), state.show(module, 1 << 20)
            found.aspect = state.aspect(stock, module)
            raise found

    def of_server(self, server, ask):
        try:
            return ask(self.control[server])
        except (wire.Gone, wire.Late, OSError) as why:
            self.failed(server, why)

    def failed(self, server, why, event=None, words=()):
        """Raises what a connection that failed means."""
        ended = server.has_ended(10 if isinstance(why, wire.Gone) else 0)  # a crash report takes its time
        if server is self.pair.stock:
            raise StockFailed(f"{ended or repr(why)} after {b' '.join(w for w in words if isinstance(w, bytes))!r}") from None
        kind = "ended" if ended else "hang" if isinstance(why, wire.Late) else "closed"
        self.control.pop(server, None)
        server.kill()
        raise Finding(kind, self.event if event is None else event, words, note=f"{ended or kind}\n{server.tail()}") from None

    def difference(self, kind, words=(), stock=None, module=None, note=""):
        return Finding(kind, self.event, words, stock, module, note)

    # --- a batch ---

    def resolve(self, word, client, server):
        if not isinstance(word, dict):
            return word
        if "now" in word or "now_s" in word:
            now = self.now + word.get("now", 0) + 1000 * word.get("now_s", 0)
            return b"%d" % (now if "now" in word else now // 1000)
        if "client" in word:
            other = self.clients[word["client"]]
            connection = other.stock if server is self.pair.stock else other.module
            return b"0" if connection is None else self.ids.get(connection, b"0")
        of = server if "own" in word else self.pair.stock
        name = (word.get("own") or word.get("dump", "")).encode("latin-1")
        told = self.of_server(of, lambda ask: ask.calls([(b"SELECT", b"%d" % client.database), (b"DUMP", name)])[1])
        dumped = wire.text(wire.tree(told)[0]) if told[:1] == b"$" else b""
        return payload.mutated(dumped, word["mutate"]) if dumped and word.get("mutate") else dumped

    def packed(self, batch, client, server):
        data = []
        for (_, words, _), mark in zip(batch.items, batch.marks):
            data.append(wire.pack([self.resolve(w, client, server) for w in words]))
            if mark is not None:
                data.append(wire.pack((b"ECHO", mark[4:-2])))
        return b"".join(data)

    def flush(self, may_block=False):
        if not self.batch:
            return
        client, batch, self.batch = self.batch_client, Batch(self.batch), []
        if client.stock is None:
            self.open(client)
        self.now = int(time.time() * 1000)
        in_multi = client.queue is not None
        for _, words, _ in batch.items:
            name = words[0].lower()
            in_multi = (in_multi or name == b"multi") and not (name in (b"exec", b"discard", b"reset") and len(words) == 1)
            batch.marks.append(None if in_multi else b"$8\r\n%08x\r\n" % next(Batch.tokens))
        batch.sent = len(batch.items) + sum(m is not None for m in batch.marks)
        self.commands += len(batch.items)
        first, words = batch.items[0][:2]
        data = [self.packed(batch, client, s) for s in (self.pair.stock, self.pair.module)]
        for server, connection, bytes_ in zip((self.pair.stock, self.pair.module), (client.stock, client.module), data):
            try:
                connection.send(bytes_)
            except (wire.Gone, wire.Late) as why:
                self.failed(server, why, first, words)
        if may_block and self.is_waiting(client, batch):
            client.pending = batch
        else:
            self.finish(client, batch)
        self.poll()

    def settle(self, server):
        """What came before to this server is answered, if it will be without more to come."""
        for _ in range(2):
            self.of_server(server, lambda ask: ask.call("PING"))

    def gather(self, server, connection, batch, replies, limit=None):
        until = time.monotonic() + (self.limit if limit is None else limit)
        while not batch.is_whole(replies):
            raw = connection.take()
            if raw is not None:
                if raw[:1] != b">":
                    replies.append(raw)
            elif not connection.receive(until - time.monotonic()):
                return False
        return True

    def blamed(self, batch, replies):
        """The command that a failure after these answers is of."""
        parts = batch.parted(replies)
        for (number, words, _), mark, part in zip(batch.items, batch.marks, parts):
            if not part or mark is not None and mark not in replies:
                return number, words
        return batch.items[-1][:2]

    def finish(self, client, batch):
        """Both servers answer all of it."""
        for server, connection, replies in ((self.pair.stock, client.stock, batch.stock), (self.pair.module, client.module, batch.module)):
            try:
                if not self.gather(server, connection, batch, replies):
                    raise wire.Late
            except (wire.Gone, wire.Late, ValueError) as why:
                if isinstance(why, wire.Late) and replies and server is self.pair.module:
                    self.compare(client, batch)  # one that differs comes before the one that is missing
                self.failed(server, why, *self.blamed(batch, replies))
        self.compare(client, batch)

    def is_waiting(self, client, batch):
        """Whether stock has not answered, though it has done all that it can; the module must be waiting too."""
        self.settle(self.pair.stock)
        if self.gather(self.pair.stock, client.stock, batch, batch.stock, 0):
            return False
        self.settle(self.pair.module)
        try:
            self.gather(self.pair.module, client.module, batch, batch.module, 0)
        except wire.Gone as why:
            self.failed(self.pair.module, why, *batch.items[0][:2])
        if batch.module != batch.stock:
            number, words, _ = batch.items[0]
            if not batch.module[0].startswith(b"-") and self.is_forgotten(client, words):
                raise StockFailed(f"{b' '.join(words)!r} waits for a key that is there")
            raise Finding("count", number, words, show_all(batch.stock), show_all(batch.module), "stock waits, and the module has answered")
        return True

    def is_forgotten(self, client, words):
        """Stock Redis 7.0 does not serve who waits for a key when a value of another type is overwritten by one to serve."""
        name = words[0].lower()
        wanted = b"+zset\r\n" if name.startswith(b"bz") else b"+list\r\n"
        keys = words[1:2] if name in (b"blmove", b"brpoplpush") else words[1:]
        asked = [(b"SELECT", b"%d" % client.database), *[(b"TYPE", key) for key in keys]]
        return wanted in self.of_server(self.pair.stock, lambda ask: ask.calls(asked))

    def check_order(self, client, words, answer):
        """Stock Redis takes a sorted set whose elements a damaged payload has out of order, and leaves them so."""
        if words[0].lower() != b"restore" or answer != b"+OK\r\n" or not any(isinstance(w, dict) and w.get("mutate") for w in words):
            return
        told = wire.elements(self.of_server(self.pair.stock, lambda ask: ask.calls([(b"SELECT", b"%d" % client.database), (b"ZRANGE", words[1], b"0", b"-1", b"WITHSCORES")]))[1])
        items = [(float(wire.text(score)), wire.text(member)) for member, score in zip(told[::2], told[1::2])]
        if items != sorted(items):
            raise StockFailed(f"RESTORE of {words[1]!r} took a sorted set that is out of order")

    def poll(self):
        for client in self.clients:
            if client.pending is not None and not self.is_waiting(client, client.pending):
                batch, client.pending = client.pending, None
                self.finish(client, batch)

    def compare(self, client, batch):
        """Raises a difference that leaves the servers in different states; what it leaves in the same one is kept for the end."""
        different = []
        for (number, words, inner), stock, module in zip(batch.items, batch.parted(batch.stock), batch.parted(batch.module)):
            if len(stock) != len(module):
                raise Finding("count", number, words, show_all(stock), show_all(module), f"{len(stock)} answers of stock, {len(module)} of the module")
            if client.queue is not None and words[0].lower() == b"exec":
                inner = client.queue
            for a, b in zip(stock, module):
                if not self.is_same(words, a, b, inner):
                    found = Finding("answer", number, words, wire.show(a), wire.show(b))
                    found.whole = wire.show(a, 1 << 20), wire.show(b, 1 << 20)
                    different.append(found)
            if stock:
                self.follow(client, words, inner, stock[0])
                self.check_order(client, words, stock[0])
        if different:
            self.poll()  # one that only the module has served explains it
        for found in different:
            self.keep(found)

    def is_same(self, words, stock, module, inner=()):
        if self.judge.same(words, stock, module, inner):
            return True
        if (NOT_SORTED in stock) != (NOT_SORTED in module):
            raise StockFailed("SORT of stock Redis 7.0 takes errno of an earlier command for its own")
        return False

    def keep(self, found):
        """The episode goes on if both servers have refused the command, or have the same all the same."""
        if found.stock.startswith("-") and found.module.startswith("-"):
            found.kind = "refusal"
        else:
            try:
                self.do_state()
            except Finding:
                raise found from None
        found.seen_at = self.event
        self.kept.setdefault(found.signature(), found)

    @staticmethod
    def follow(client, words, inner, answer):
        """What the client's connection is in, after this answer."""
        name = words[0].lower()
        if answer == b"+QUEUED\r\n" and client.queue is not None:
            client.queue.append((words, inner))
        elif name == b"multi" and answer == b"+OK\r\n":
            client.queue = []
        elif name in (b"exec", b"discard", b"reset") and client.queue is not None and len(words) == 1:
            queued, client.queue = client.queue, None
            for (one, _), told in zip(queued, wire.elements(answer)):
                if one[0].lower() == b"select" and told == (b"+", b"OK"):
                    client.database = int(one[1])
        if answer == b"+RESET\r\n":
            client.was_reset, client.database = True, 0
        elif name == b"select" and answer == b"+OK\r\n":
            client.database = int(words[1])


def show_all(replies):
    return ", ".join(wire.show(r) for r in replies) or "(nothing)"
