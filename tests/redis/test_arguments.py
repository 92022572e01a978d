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
