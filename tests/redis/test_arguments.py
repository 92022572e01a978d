"""Arguments of every command that the module handles, in every number, by everyone, beside a plain server: a wrong number is
refused as Redis refuses it, before anything looks at the arguments."""

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
        return [(name, one[1]) for name, one in zip(names, told)]

    def wrong_numbers(self):
        """Each command with each number of arguments that Redis refuses, of keys and of numbers."""
        for name, arity in self.commands():
            for count in range(1, LONGEST + 2):
                if count == arity or 0 < -arity <= count:
                    continue
                for words in {tuple(w[i % len(w)] for i in range(count - 1)) for w in (("pub1",), ("1",), ("pub1", "1"), ("1", "pub1"))}:
                    yield (name, *words)

    def assert_same(self, both, lines):
        ours, theirs = (r.answers(lines) for r in both)
        differ = [(words, repr(a), repr(b)) for words, a, b in zip(lines, ours, theirs) if repr(a) != repr(b)]
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

    def test_under_the_modules_own_names(self):
        r = self.clients("of_keys")[0]
        for words, told in zip(lines := list(self.wrong_numbers()), r.answers([("stele." + w[0].decode(), *w[1:]) for w in lines])):
            self.assertIsInstance(told, ServerError, words)
        self.assertEqual(r("PING"), "PONG")
