"""Episodes: a header and events, drawn from a seed alone, so that the same seed gives the same ones."""

import hashlib

from . import draw, grammar

CLIENTS = 5
RULES = ["default", "default", "default", "some_keys", "reads", "not_set", "selected", "no_keys"]
# SORT of stock Redis takes errno as it finds it; this sets it to 0, without a key.
SETS_ERRNO = [b"GEORADIUS_RO", b"none", b"1", b"1", b"1", b"m"]
LIMITED = {"some_keys", "selected", "no_keys"}
SCRIPT = (b"local told = {} for line in string.gmatch(ARGV[1], '[^\\1]+') do local words = {} for word in string.gmatch(line, '[^\\2]+') do "
          b"words[#words + 1] = word end told[#told + 1] = redis.%s(unpack(words)) end return told")
SCRIPTS = [SCRIPT.replace(b"%s", how) for how in (b"call", b"pcall")]
FILLS = {"str": "set", "num": "incrby", "hash": "hset", "list": "rpush", "set": "sadd", "zset": "zadd", "geo": "geoadd", "hll": "pfadd"}


class Episode:
    def __init__(self, rng, words_of, steps):
        self.rng, self.grammar, self.events = rng, words_of, []
        rules = [rng.choice(RULES) for _ in range(CLIENTS - 1)] if rng.random() < 0.5 else ["default"] * (CLIENTS - 1)
        if rng.random() < 0.4:
            rules[0] = "some_keys"
        self.header = {"clients": [("default", 2), *[(r, rng.choice([2, 2, 3])) for r in rules]]}
        self.client = 0
        self.fill()
        names, weights = zip(*SCENARIOS.items())
        while sum(e[0] == "do" for e in self.events) < steps:
            getattr(self, "add_" + rng.choices(names, weights)[0])()

    def do(self, client, words, inner=()):
        limited = self.header["clients"][client][0] in LIMITED
        if limited and any(map(differs_by_rights, [words, *[w for w, _ in inner]])):
            return
        if words[0].lower() in (b"sort", b"sort_ro") and not limited:
            self.events.append(["do", client, SETS_ERRNO, ()])
        self.events.append(["do", client, words, inner])

    def any_client(self):
        """Mostly the one before: what one client sends goes in one piece."""
        if self.rng.random() < 0.5:
            self.client = self.rng.randrange(CLIENTS)
        return self.client

    def command(self, name=None):
        words = self.grammar.some(self.rng, name)
        while words[0].lower() in grammar.BLOCKING and self.rng.random() < 0.8:
            words = self.grammar.some(self.rng, name)
        return words

    def plain_commands(self, most):
        """Such as a script can call: no words that are resolved later. No stream, which a kill takes."""
        found = []
        while len(found) < most:
            words = self.command()
            if words[0].lower() != b"xadd" and all(isinstance(w, bytes) for w in words):
                found.append(words)
        return found

    def fill(self):
        for kind in FILLS:
            for key in draw.KINDS[kind]:
                if self.rng.random() < 0.6:
                    self.do(0, self.filling(kind, key))

    # --- scenarios ---

    def add_commands(self):
        client = self.any_client()
        for _ in range(self.rng.randint(1, 24)):
            self.do(client, self.command())

    def add_multi(self):
        client, rng = self.any_client(), self.rng
        if rng.random() < 0.3:
            self.do(client, [b"WATCH", *[rng.key("any") for _ in range(rng.randint(1, 3))]])
            if rng.random() < 0.5:
                self.do(self.any_client(), self.command())
        self.do(client, [b"MULTI"])
        for _ in range(rng.randint(0, 8)):
            chance = rng.random()
            if chance < 0.02:
                self.do(client, rng.choice([[b"MULTI"], [b"WATCH", b"s1"], [b"NOSUCH"], [b"EXEC", b"x"], [b"DEBUG", b"RELOAD"], [b"FLUSHALL"]]))
            elif chance < 0.1:
                self.do(self.any_client(), self.command())
            else:
                self.do(client, self.command())
        self.do(client, [rng.choices([b"EXEC", b"DISCARD", b"RESET"], [90, 9, 1])[0]] if client else [b"EXEC"])

    def add_script(self):
        rng, inner = self.rng, self.plain_commands(self.rng.randint(1, 5))
        inner = [words for words in inner if not any(b"\1" in w or b"\2" in w or not w for w in words)]
        client = self.any_client()
        lines = b"\1".join(b"\2".join(words) for words in inner)
        name = rng.choices([b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO", b"FCALL", b"FCALL_RO"], [6, 2, 1, 1, 1, 1])[0]
        script = rng.choice(SCRIPTS) if name.startswith(b"EVAL") else rng.choice([b"calls", b"reads"])
        if name.startswith(b"EVALSHA"):
            script = hashlib.sha1(script if rng.random() < 0.9 else b"").hexdigest().encode()
        if name.startswith(b"FCALL"):
            lines = lines.replace(b"\1", b";").replace(b"\2", b" ")
        self.do(client, [name, script, b"0", lines], [(w, ()) for w in inner])

    def add_waiting(self):
        """A client waits for a key, and others do to that key whatever they can."""
        rng = self.rng
        waits = rng.randrange(1, CLIENTS)
        name = rng.choice(sorted(grammar.BLOCKING))
        words = self.grammar.command(rng, name.decode())
        key_at = 3 if name in (b"blmpop", b"bzmpop") else 1
        key = words[key_at]
        words[grammar.BLOCKING[name]] = b"0"
        others = [c for c in range(CLIENTS) if c != waits]
        if rng.random() < 0.8:
            self.do(0 if waits else 1, [b"DEL", *[w for w in words[1:] if w in draw.ALL_KEYS]])
        self.do(waits, words)
        if rng.random() < 0.3:
            self.do(waits, self.command())
        for _ in range(rng.randint(1, 5)):
            other = rng.choice(others)
            made = self.command(rng.choice(["rpush", "lpush", "zadd", "set", "sadd", "hset", "rename", "copy", "move", "del", "expire", "sort", "lmove",
                                            "zunionstore", "restore", "geoadd", "swapdb"]))
            if rng.random() < 0.7 and len(made) > 1:
                made[2 if made[0].lower() in (b"rename", b"copy", b"lmove") and len(made) > 2 else 1] = key
            inside = rng.random() < 0.2
            for w in ([[b"MULTI"], made, self.command(), [b"EXEC"]] if inside else [made]):
                self.do(other, w)
        if rng.random() < 0.5:
            self.do(0, [b"CLIENT", b"UNBLOCK", {"client": waits}, *rng.choice([[], [b"TIMEOUT"], [b"ERROR"]])])

    def add_expiry(self):
        rng = self.rng
        key = rng.key("any")
        self.do(0, [b"PEXPIREAT", key, {"now": rng.randint(1, 12)}])
        self.events.append(["sleep", 30])

    def add_overwritten(self):
        """A key with a time to live gets another value: the time may go, or stay, but as stock has it."""
        rng = self.rng
        key, client = rng.key("any"), self.any_client()
        self.do(client, self.filling(rng.choice(sorted(FILLS)), key))
        words = self.grammar.command(rng, rng.choice(STORING if rng.random() < 0.6 else OVERWRITING))
        places = [i for i, w in enumerate(words) if w in draw.ALL_KEYS and i > 0]
        stores = [i + 1 for i, w in enumerate(words[:-1]) if isinstance(w, bytes) and w.lower() in (b"store", b"storedist")]
        for kind, keys in draw.KINDS.items():
            for source in keys:
                if source in words[1:] and rng.random() < 0.7:
                    self.do(client, self.filling(kind, source))
        if stores or places:
            words[rng.choice(stores) if stores else places[0]] = key
        self.do(client, [b"EXPIRE", key, b"100000"])
        self.do(client, words)
        self.do(client, [b"PTTL", key])

    def filling(self, kind, key):
        words = self.grammar.command(self.rng, FILLS[kind])
        if kind == "geo":
            return [b"GEOADD", key, b"1", b"1", b"m1", b"2", b"2", b"m2"]
        return [words[0], key, *words[2:]]

    def add_random_choice(self):
        rng = self.rng
        key = rng.key("set")
        self.do(0, [b"SPOP", key, rng.number()] if rng.random() < 0.7 else [b"SPOP", key])
        self.do(0, [b"SCARD", key])
        self.do(0, [b"DEL", key])
        self.events.append(["state"])

    def add_reload(self):
        self.do(0, [b"DEBUG", b"RELOAD"])

    def add_out_of_memory(self):
        """A limit that is exceeded from the first byte, so both must refuse, or evict, the same."""
        rng = self.rng
        policy = rng.choice([b"noeviction", b"noeviction", b"allkeys-lru", b"allkeys-random", b"volatile-ttl", b"volatile-lru", b"volatile-random"])
        self.do(0, [b"CONFIG", b"SET", b"maxmemory-policy", policy, b"maxmemory", b"1"])
        for _ in range(rng.randint(1, 4)):
            rng.choice([self.add_commands, self.add_commands, self.add_multi, self.add_script])()
        self.do(0, [b"CONFIG", b"SET", b"maxmemory", b"0"])


    def add_kill(self):
        self.events.append(["kill"])

    def add_killed(self):
        self.events.append(["killed", self.plain_commands(self.rng.randint(2, 12)), round(self.rng.choice([0, 0.0002, 0.001, 0.003]) * self.rng.random(), 6)])

    def add_torn(self):
        rng = self.rng
        how = rng.choice(["kill in EXEC", "kill in EXEC", "kill in script", "shutdown in script"])
        commands = [words for words in self.plain_commands(rng.randint(3, 10)) if words[0].lower() not in RANDOM and words[0].lower() not in grammar.BLOCKING]
        commands[:0] = [[b"SET", b"s1", b"first"], [b"RPUSH", b"x1", b"first"]]
        if how == "kill in EXEC" and rng.random() < 0.6:
            commands.insert(rng.randint(1, len(commands)), rng.choice(ADMINISTRATION))
        commands.append([b"SET", b"s2", b"last"])
        self.events.append(["torn", how, commands, rng.randint(1, len(commands) - 1)])

    def add_probe(self):
        for _ in range(self.rng.randint(1, 6)):
            key = self.rng.key(self.rng.choice(sorted(draw.KINDS))).decode("latin-1")
            self.events.append(["probe", key, self.rng.mutations()])

    def add_guarded(self):
        rules = [number for number, (name, _) in enumerate(self.header["clients"]) if name == "some_keys"]
        for _ in range(6 if rules else 0):
            if self.rng.random() < 0.3:
                words = [b"SORT", self.rng.key("list"), b"STORE", self.rng.key("dest"), b"STORE", self.rng.key("dest")]
            else:
                words = self.command(self.rng.choice(SEVERAL_KEYS))
            words = [self.rng.choice(ALLOWED_KEYS) if w in draw.ALL_KEYS and i > 0 and self.rng.random() < 0.6 else w for i, w in enumerate(words)]
            if all(isinstance(w, bytes) for w in words) and not reads_by_pattern(words):
                self.events.append(["guarded", self.rng.choice(rules), words])

    def add_memory(self):
        self.events.append(["memory", self.rng.choice(["noeviction", "noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random"])])

    def add_full(self):
        self.events.append(["full"])

    def add_large(self):
        rng = self.rng
        self.events.append(["large", rng.choice([[b"SETRANGE", b"large", b"50000000", b"x"], [b"SETBIT", b"large", b"400000000", b"1"],
                                                [b"BITFIELD", b"large", b"SET", b"u8", b"400000000", b"1"]])])


# Of the module's commands, those that scenarios send, not the grammar.
ELSEWHERE = {"eval", "evalsha", "fcall", "eval_ro", "evalsha_ro", "fcall_ro", "spop", "dump", "refused", "denied"}
STORING = ["sort", "sunionstore", "sinterstore", "sdiffstore", "zunionstore", "zinterstore", "zdiffstore", "zrangestore", "geosearchstore", "georadius",
           "georadiusbymember", "bitop", "pfmerge", "restore"]  # their destination comes first, or after STORE
OVERWRITING = ["set", "getset", "mset", "msetnx", "setrange", "append", "incrbyfloat", "setbit", "bitop", "bitfield", "pfadd", "pfmerge", "sort", "copy",
               "rename", "restore", "sunionstore", "sinterstore", "sdiffstore", "zunionstore", "zinterstore", "zdiffstore", "zrangestore",
               "geosearchstore", "georadius", "georadiusbymember", "move", "persist", "getex", "del", "lmove", "smove", "geoadd", "zadd", "hset"]
RANDOM = {b"randomkey", b"srandmember", b"hrandfield", b"zrandmember", b"spop"}
ALLOWED_KEYS = [b"l1", b"t1", b"z1", b"g1", b"by", b"get", b"limit", b"store"]  # some of those of limits.ALLOWED
SEVERAL_KEYS = ["sort", "georadius", "geosearchstore", "zunionstore", "zrangestore", "bitop", "copy", "rename", "smove", "lmove", "mset", "pfmerge",
                "sunionstore", "restore", "lmpop"]
ADMINISTRATION = [*[[b"DEBUG", b"RELOAD"]] * 6, [b"SAVE"], [b"BGSAVE"], [b"FLUSHALL"], [b"FLUSHDB"], [b"SWAPDB", b"0", b"1"],
                  [b"CONFIG", b"SET", b"hz", b"10"], [b"INFO"], [b"DEBUG", b"CHANGE-REPL-ID"], [b"REPLICAOF", b"NO", b"ONE"], [b"SCRIPT", b"FLUSH"],
                  [b"FUNCTION", b"FLUSH"], [b"ACL", b"SETUSER", b"someone"], [b"CLIENT", b"LIST"], [b"BGREWRITEAOF"], [b"SELECT", b"1"], [b"DEBUG", b"LOADAOF"]]
SCENARIOS = {"commands": 100, "multi": 14, "script": 10, "waiting": 8, "expiry": 1, "random_choice": 1, "reload": 0.3, "out_of_memory": 1,
             "kill": 0.4, "killed": 0.8, "torn": 0.6, "probe": 1, "guarded": 6, "overwritten": 10, "memory": 0.4, "full": 0.03, "large": 0.2}


def sort_options(words):
    """The words that may be options of SORT, in lower case; none of another command."""
    return [w.lower() if isinstance(w, bytes) else b"" for w in words[2:]] if words[0].lower() in (b"sort", b"sort_ro") else []


def reads_by_pattern(words):
    """SORT with BY or GET: stock refuses it to who may not read all keys, the module asks for the right to each key that is named."""
    options = sort_options(words)
    return any(w in (b"by", b"get") and not (i and options[i - 1] == b"store") for i, w in enumerate(options))


def differs_by_rights(words):
    """Also with several STORE, of which stock does not always ask for the last: that is an event of its own."""
    return reads_by_pattern(words) or sort_options(words).count(b"store") > 1


def episode(words_of, seed, number, steps):
    made = Episode(draw.Draw(f"{seed} {number}"), words_of, steps)
    return made.header, made.events
