"""Arguments of every command that the module handles, in every number, by everyone, beside a plain server: a wrong number is
refused as Redis refuses it, before anything looks at the arguments."""

import itertools

from beds import RedisCase, ServerError

USERS = {  # and what ACL SETUSER gives them
    "default": None,
    "of_keys": ("~pub*", "+@all"),
    "of_reads": ("%R~pub*", "%W~own*", "+@all"),
    "of_some_commands": ("~*", "+@all", "-set", "-@list", "-@scripting", "-zadd"),
    "of_no_keys": ("resetkeys", "+@all"),
}
LONGEST = 7  # arguments, with the name: no command has a bound above it but GEOSEARCHSTORE's 8


class Numbers(RedisCase):
    def setUp(self):
        super().setUp()
        self.servers = self.server("size", "8M"), self.server(pool=False, name="plain")

    def clients(self, user="default", protocol=2):
        both = []
        for server in self.servers:
            r = server.client()
            if USERS[user] is not None:
                r("ACL", "SETUSER", user, "on", "nopass", *USERS[user])
            r("HELLO", protocol, "AUTH", user, "any")
            both.append(r)
        return both

    def commands(self):
        """The names of the commands that the module handles, and how many arguments Redis takes: exactly, or, below 0, at least."""
        ours, theirs = self.clients()
        names = [name.removeprefix(b"stele.") for name in ours("COMMAND", "LIST", "FILTERBY", "MODULE", "stele")]
        told = theirs("COMMAND", "INFO", *names)
        self.assertGreater(len(names), 140)
        return [(name, one[1]) for name, one in zip(names, told) if one is not None]

    def test_have_the_flags_of_redis(self):
        differ = {  # what a module cannot say, or does otherwise
            b"object": {"readonly"}, b"sort_ro": {"movablekeys"}}
        ours, theirs = self.clients()
        names = [name for name, _ in self.commands()]
        for name, own, stock in zip(names, ours("COMMAND", "INFO", *[b"stele." + n for n in names]), theirs("COMMAND", "INFO", *names)):
            left = {str(flag) for flag in set(own[2]) ^ set(stock[2])}
            self.assertEqual(left - {"module", "blocking", "skip_monitor"} - differ.get(name, set()), set(), name)

    def wrong_numbers(self):
        """Each command with each number of arguments that Redis refuses, of keys and of numbers."""
        for name, arity in self.commands():
            for count in range(1, LONGEST + 2):
                if count == arity or 0 < -arity <= count:
                    continue
                for words in {tuple(w[i % len(w)] for i in range(count - 1)) for w in (("pub1",), ("1",), ("pub1", "1"), ("1", "pub1"))}:
                    yield (name, *words)

    def any_numbers(self):
        """Each command with each number of arguments, right ones too."""
        for name, _ in self.commands():
            for count in range(4):
                for words in itertools.product(("pub1", "1"), repeat=count):
                    yield (name, *words)
            for count in range(4, LONGEST + 1):
                yield (name, *("pub1", "1", "1", "pub2", "0", "x", "1", "1")[:count])

    def assert_same(self, both, lines, of=repr):
        ours, theirs = (r.answers(lines) for r in both)
        differ = [(words, repr(a), repr(b)) for words, a, b in zip(lines, ours, theirs) if of(a) != of(b)]
        self.assertEqual(differ[:5], [], f"{len(differ)} of {len(lines)} answers differ")

    def test_wrong_ones_are_refused_as_redis_does(self):
        lines = list(self.wrong_numbers())
        self.assertGreater(len(lines), 1000)
        for user in USERS:
            for protocol in (2, 3):
                with self.subTest(user, protocol=protocol):
                    self.assert_same(self.clients(user, protocol), lines)

    def test_a_transaction_with_a_wrong_one_does_nothing(self):
        for user in USERS:
            both = self.clients(user)
            for words in self.wrong_numbers():
                if len(words) < 4:
                    ours, theirs = (r.answers([("MULTI",), ("SET", "pub9", 1), words, ("EXEC",)]) for r in both)
                    self.assertEqual([str(told) for told in ours[2:]], [str(told) for told in theirs[2:]], words)
                    self.assertIn("EXECABORT", str(ours[3]))
            self.assertEqual(self.servers[0].client()("EXISTS", "pub9"), 0)

    def test_scripts_are_told(self):
        code = "local told = redis.pcall(unpack(ARGV)); return type(told) == 'table' and told.err or 'no error'"
        for user in ("default", "of_keys"):
            lines = [("EVAL", code, 0, *words) for words in self.wrong_numbers()]
            self.assert_same(self.clients(user), lines)

    def test_right_ones_are_refused_as_redis_does(self):
        """Not what they answer, which other tests compare, but which kind of error."""
        waiting = (b"blpop", b"brpop", b"bzpopmin", b"bzpopmax", b"blmpop", b"bzmpop", b"blmove", b"brpoplpush")
        # Of PFMERGE with a destination alone, Redis does not ask for the right to it.
        everything = [words for words in self.any_numbers() if words[0] != b"pfmerge" or len(words) > 2]
        before = (("FLUSHALL",), ("APPEND", "pub1", "x"))
        lines = [line for words in everything if words[0] not in waiting for line in (*before, words)]
        queued = [line for words in everything for line in (*before, ("MULTI",), words, ("EXEC",))]

        def kind(told):
            return str(told).split()[0] if isinstance(told, ServerError) else ""

        for user in ("default", "of_keys", "of_no_keys", "of_some_commands"):
            with self.subTest(user):
                self.assert_same(self.clients(user), lines, kind)
        for user in ("default", "of_keys", "of_no_keys"):
            with self.subTest(user, queued=True):
                self.assert_same(self.clients(user, 3), queued, kind)

    def test_scripts_that_only_read_ask_for_rights_too(self):
        for r in self.clients():
            r("SET", "pub1", 1)
            r("ACL", "SETUSER", "ann", "on", "nopass", "~*", "+@all", "-get")
            r("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', flags={'no-writes'},"
                                  "callback=function(keys) return redis.call('get', keys[1]) end}")
            code = "return redis.call('get', KEYS[1])"
            digest = r("SCRIPT", "LOAD", code)
            r("AUTH", "ann", "any")
            for words in (("EVAL_RO", code), ("EVALSHA_RO", digest), ("FCALL_RO", "f"), ("EVAL", code), ("FCALL", "f")):
                with self.assertRaisesRegex(ServerError, "(?i)permission|can't run this command", msg=words):
                    r(*words, 1, "pub1")

    def test_scripts_ask_for_rights_to_what_stays_redis_own(self):
        code = "local told = redis.pcall(unpack(ARGV)); return type(told) == 'table' and told.err and 'error' or 'done'"
        function = "#!lua name=l\nredis.register_function('f', function(_, a) local told = redis.pcall(unpack(a)); " \
                   "return type(told) == 'table' and told.err and 'error' or 'done' end)"
        lines = [words for key in ("secret", "pub1") for words in (
            ("DUMP", key), ("XADD", f"{key}s", "*", "a", "b"), ("XLEN", f"{key}s"), ("XRANGE", f"{key}s", "-", "+"), ("TTL", key), ("EXISTS", key),
            ("XGROUP", "CREATE", f"{key}s", "g", "$"), ("XINFO", "STREAM", f"{key}s"), ("MEMORY", "USAGE", key), ("OBJECT", "FREQ", key),
            ("OBJECT", "IDLETIME", key), ("OBJECT", "ENCODING", key), ("PUBLISH", key, "told"), ("TOUCH", key), ("GET", key), ("SET", key, 1),
            ("XREAD", "STREAMS", f"{key}s", "0"), ("XREAD", "STREAMS"), ("XGROUP",), ("XGROUP", "NOSUCH", key), ("NOSUCH", key), ("DBSIZE",),
            ("EVAL", "return 1", 0), ("SELECT", 1), ("SELECT", 0), ("KEYS", "*"), ("CONFIG", "GET", "maxmemory"), ("MIGRATE", "h", 1, key))]
        both = self.clients()
        for r in both:
            r("FUNCTION", "LOAD", function)
            for key in ("secret", "pub1"):
                r("SET", key, 1)
                r("XADD", f"{key}s", "1-1", "a", "b")
        rules = (("~pub*", "+@all"), ("%R~pub*", "+@all"), ("%W~pub*", "+@all"), ("~*", "+@all", "-dump", "-xadd", "-ttl", "-memory", "-select"),
                 ("~*", "&pub*", "+@all"), ("~*", "&*", "+@all", "-@stream", "+xadd", "+xgroup|create"))
        for number, rule in enumerate(rules):
            for r in both:
                r("ACL", "SETUSER", f"u{number}", "on", "nopass", "resetchannels", *rule)
            user = [server.client() for server in self.servers]
            for r in user:
                r("AUTH", f"u{number}", "any")
            for call in (("EVAL", code, 0), ("FCALL", "f", 0)):
                told = [r.answers([(*call, *words) for words in lines]) for r in user]
                differ = [(words, a, b) for words, a, b in zip(lines, *told) if str(a) != str(b)]
                self.assertEqual(differ, [], rule)
        self.assertIn(b"done", told[0])
        self.assertIn(b"error", told[0])

    def test_under_the_modules_own_names(self):
        r = self.clients("of_keys")[0]
        for words, told in zip(lines := list(self.wrong_numbers()), r.answers([("stele." + w[0].decode(), *w[1:]) for w in lines])):
            self.assertIsInstance(told, ServerError, words)
        self.assertEqual(r("PING"), "PONG")


class RandomCounts(RedisCase):
    """HRANDFIELD, SRANDMEMBER and ZRANDMEMBER, asked for more elements than any memory holds."""

    FILL = (("SADD", "set", *range(3)), ("HSET", "hash", "f", "v"), ("ZADD", "ranking", 1, "m"))
    ASKS = (("SRANDMEMBER", "set"), ("HRANDFIELD", "hash"), ("ZRANDMEMBER", "ranking"))
    MOST = 2 ** 63 - 1

    def outcome(self, server, lines):
        """What the last of the commands is told, or that the server ends the client; and whether it answers others afterwards."""
        r = server.client()
        for words in lines:
            r.send(*words)
        for _ in lines[1:]:
            r.read.readline()
        header = r.read.readline()
        told = r.read.readline() if header == b"*1\r\n" else header
        is_refused = told.startswith(b"-")
        if not is_refused:
            r.read.read()  # to the end of the connection
        return told if is_refused else "ended", server.client()("PING")

    def test_end_the_client_at_its_limit_as_in_redis(self):
        servers = self.server("size", "8M"), self.server("size", "8M", "media", "file", name="waiting"), self.server(pool=False, name="plain")
        for server in servers:
            r = server.client()
            r("CONFIG", "SET", "client-output-buffer-limit", "normal 4mb 0 0")
            for words in self.FILL:
                r(*words)
        for words in self.ASKS:
            with_too = {"HRANDFIELD": ("WITHVALUES",), "ZRANDMEMBER": ("WITHSCORES",)}.get(words[0])
            for count in (-self.MOST - 2, -self.MOST - 1, -self.MOST, -2 ** 62, -2 ** 40):
                for more in ((), with_too) if with_too else ((),):
                    ask = (*words, count, *more)
                    for lines in ([ask], [("SADD", "set", count), ask], [("MULTI",), ask, ("EXEC",)]):
                        told = [self.outcome(server, lines) for server in servers]
                        self.assertEqual(told[0], told[2], lines)
                        self.assertEqual(told[1], told[2], lines)

    def test_of_a_key_that_is_not_there_are_none(self):
        r = self.server("size", "8M").client()
        for name, _ in self.ASKS:
            self.assertEqual(r(name, "none", -self.MOST), [])
            self.assertEqual(r(name, "none", self.MOST), [])

    def test_are_drawn_again_each_time(self):
        r = self.server("size", "8M").client()
        for words in self.FILL:
            r(*words)
        for name, key in self.ASKS:
            for count in (1, 16, 17, 20_000):
                told = r(name, key, -count)
                self.assertEqual(len(told), count)
                if name == "SRANDMEMBER" and count > 100:
                    self.assertEqual(set(told), {b"0", b"1", b"2"})
        self.assertEqual(r("HRANDFIELD", "hash", -20_000, "WITHVALUES"), [b"f", b"v"] * 20_000)
        self.assertEqual(r("ZRANDMEMBER", "ranking", -20_000, "WITHSCORES"), [b"m", b"1"] * 20_000)

    def test_few_of_many_are_different_and_all_are_drawn_some_time(self):
        r = self.server("size", "8M").client()
        members = {str(i).encode() for i in range(200)}
        r("SADD", "many", *members)
        drawn = set()
        for _ in range(400):
            told = r("SRANDMEMBER", "many", 16)
            self.assertEqual(len(set(told)), 16)
            drawn.update(told)
        self.assertEqual(drawn, members)
