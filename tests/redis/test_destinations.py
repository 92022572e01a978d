"""Commands that write to a second key: what becomes of its expiry time, and who may write there, beside a plain server."""

import itertools
import unittest

from beds import RedisCase, ServerError

# D: the destination. DUMP: what DUMP answers of `text`.
COMMANDS = tuple(line.split() for line in (
    "GEOSEARCHSTORE D places FROMLONLAT 1 1 BYRADIUS 8000 km", "GEOSEARCHSTORE D places FROMLONLAT 1 1 BYRADIUS 8000 km STOREDIST",
    "GEOSEARCHSTORE D places FROMLONLAT 90 1 BYRADIUS 1 km", "GEORADIUS places 1 1 8000 km STORE D", "GEORADIUS places 1 1 8000 km STOREDIST D",
    "GEORADIUS places 90 1 1 km STORE D", "GEORADIUS places 1 1 8000 km STORE other STORE D", "GEORADIUSBYMEMBER places a 8000 km STORE D", "GEORADIUSBYMEMBER places a 8000 km STOREDIST D",
    "ZUNIONSTORE D 1 ranking", "ZUNIONSTORE D 2 ranking D", "ZINTERSTORE D 1 ranking", "ZDIFFSTORE D 1 ranking", "ZINTERSTORE D 2 ranking none",
    "ZRANGESTORE D ranking 0 -1", "ZRANGESTORE D ranking 5 6", "SUNIONSTORE D set", "SUNIONSTORE D set D", "SINTERSTORE D set", "SDIFFSTORE D set",
    "SDIFFSTORE D set set", "SORT list STORE D", "SORT list LIMIT 7 1 STORE D", "SORT D ALPHA STORE D", "SET D x", "SET D x KEEPTTL", "SET D x GET",
    "SET D x XX", "SET D x NX", "SET D x EX 1000", "SETEX D 1000 x", "PSETEX D 1000000 x", "SETNX D x", "GETSET D x", "GETEX D", "GETEX D PERSIST",
    "GETEX D EX 1000", "GETDEL D", "MSET D x", "MSETNX D x", "BITOP NOT D text", "BITOP AND D text D", "BITOP NOT D none", "PFMERGE D seen",
    "PFMERGE D", "PFADD D b", "COPY text D REPLACE", "COPY list D REPLACE", "COPY timed D REPLACE", "COPY text D", "RENAME text D", "RENAME timed D",
    "RENAMENX text D", "RESTORE D 0 DUMP REPLACE", "RESTORE D 1000000 DUMP REPLACE", "RESTORE D 0 DUMP", "PERSIST D", "EXPIRE D 1000", "EXPIRE D 0",
    "SETRANGE D 0 q", "APPEND D q", "INCR D", "INCRBYFLOAT D 1", "SETBIT D 1 1", "BITFIELD D SET u8 0 1", "BITFIELD D SET u8 800 1", "LPUSH D a",
    "RPUSHX D a", "LSET D 0 a", "LTRIM D 0 0", "LTRIM D 1 0", "LMOVE list D LEFT LEFT", "RPOPLPUSH list D", "BLMOVE list D LEFT LEFT 1", "SADD D x",
    "SMOVE set D a", "SPOP D", "HSET D x y", "HINCRBY D x 1", "HDEL D q", "ZADD D 5 x", "ZADD D XX 7 q", "ZINCRBY D 2 q", "ZPOPMIN D", "GEOADD D 2 2 x",
    "GEOADD D 2 2 q", "GEOADD D XX 2 2 q", "GEODIST D q q", "PFCOUNT D", "MOVE D 1",
))
SCRIPTS = tuple(["EVAL", script, "0"] for script in (
    "redis.call('del','D') redis.call('set','D','y')", "redis.call('del','D') redis.call('zadd','D','1','y')",
    "redis.call('geosearchstore','D','places','FROMLONLAT','1','1','BYRADIUS','8000','km')",
))
DESTINATIONS = ("SET D 5", "ZADD D 1 q", "GEOADD D 1 1 q", "SADD D q", "RPUSH D q", "HSET D q r", "PFADD D q", "XADD D 1-1 a b", "")


class Destinations(RedisCase):
    def answer(self, r, *words):
        try:
            return r(*words)
        except ServerError as error:
            return "error", str(error).split()[0]

    def fill(self, r):
        r("DEL", "places", "ranking", "set", "list", "text", "timed", "seen")
        r("GEOADD", "places", 1, 1, "a", 2, 2, "b")
        r("ZADD", "ranking", 1, "a", 2, "b")
        r("SADD", "set", "a", "b")
        r("RPUSH", "list", 1, 2)
        r("SET", "text", "abc")
        r("SET", "timed", "abc", "EX", 5000000)
        r("PFADD", "seen", "a")

    def state(self, r, key):
        """Type, and about when the key expires: never, or in about so many powers of ten of seconds."""
        ends = r("TTL", key)
        return r("TYPE", key), ends if ends < 0 else len(str(ends + 500))

    def test_keep_or_lose_their_expiry_time_as_in_a_plain_server(self):
        server = self.server("size", "8M")
        beds = server.client(), self.server(pool=False, name="plain").client()
        kept = {}
        for number, (words, made) in enumerate(itertools.product(COMMANDS + SCRIPTS, DESTINATIONS)):
            name, told = f"D{number}", []
            for r in beds:
                self.fill(r)
                if made:
                    r(*[name if word == "D" else word for word in made.split()])
                    r("PEXPIRE", name, 300000000)
                given = [{"D": name, "DUMP": r("DUMP", "text")}.get(word, word.replace("'D'", f"'{name}'")) for word in words]
                answer = self.answer(r, *given)
                told.append((None if words[0] == "SPOP" else answer, self.state(r, name)))
            self.assertEqual(*told, (words, made))
            if told[0][1][0] != "stream":  # of Redis' own, so it goes with the server
                kept[name] = told[0][1], words, made
        server.kill()
        r = server.start().client()
        for name, (state, words, made) in kept.items():
            self.assertEqual(self.state(r, name), state, (words, made))


# What a user sends who may use the keys `list`, `text` ... and those named like options, but not `secret`.
FORBIDDEN = tuple(line.split() for line in (
    "SORT list STORE secret", "SORT list ALPHA LIMIT 0 1 STORE secret", "SORT list BY nosort STORE secret", "SORT list GET # STORE secret",
    "GEOSEARCHSTORE secret places FROMLONLAT 1 1 BYRADIUS 8000 km", "GEORADIUS places 1 1 8000 km STORE secret",
    "GEORADIUS places 1 1 8000 km COUNT 1 STOREDIST secret", "GEORADIUSBYMEMBER places a 8000 km STORE secret",
    "GEORADIUSBYMEMBER places STORE 8000 km STORE secret",
    "ZUNIONSTORE secret 1 ranking", "ZINTERSTORE secret 1 ranking", "ZDIFFSTORE secret 1 ranking", "ZRANGESTORE secret ranking 0 -1",
    "SUNIONSTORE secret set", "SINTERSTORE secret set", "SDIFFSTORE secret set", "SMOVE set secret a", "LMOVE list secret LEFT LEFT",
    "RPOPLPUSH list secret", "BLMOVE list secret LEFT LEFT 0.01", "BRPOPLPUSH list secret 0.01", "BITOP NOT secret text", "PFMERGE secret seen",
    "COPY text secret REPLACE", "RENAME text secret", "RENAMENX text secret", "MSET text a secret b", "MSETNX text a secret b", "SET secret x",
    "LMPOP 2 list secret LEFT", "ZMPOP 2 ranking secret MIN", "BLMPOP 0.01 2 none secret LEFT",
))
# A plain server does not see these destinations.
HIDDEN = tuple(line.split() for line in (
    "SORT list STORE by STORE secret", "SORT list STORE get STORE secret", "SORT list STORE limit STORE text STORE secret",
    "GEORADIUS places 1 1 8000 km STORE STORE STORE secret", "GEORADIUS places 1 1 8000 km STORE STOREDIST STOREDIST secret",
    "GEORADIUSBYMEMBER places a 8000 km STORE STOREDIST STOREDIST secret", "GEORADIUS places 1 1 8000 km COUNT 1 STORE by STORE secret",
    "SORT list STORE BY STORE secret", "SORT list ALPHA STORE Get STORE secret LIMIT 0 1",
))


class Rights(RedisCase):
    USER = ("ACL", "SETUSER", "someone", "on", "nopass", "+@all", *(f"~{name}" for name in (
        "list", "places", "ranking", "set", "text", "seen", "none", "by", "BY", "get", "Get", "limit", "STORE", "STOREDIST")))

    def told(self, r, someone, words):
        r("DEL", "places", "ranking", "set", "list", "text", "secret", "seen", "by", "BY", "get", "Get", "limit", "STORE", "STOREDIST")
        Destinations.fill(self, r)
        r("SET", "secret", "kept")
        script = "return redis.call(unpack(ARGV))"
        answers = []
        for send in (words, ("EVAL", script, 0, *words)):
            try:
                answers.append(someone(*send))
            except ServerError as error:
                answers.append(any(word in str(error) for word in ("NOPERM", "No permissions", "can't access at least one of the keys",
                                                                    "no permissions")))
        someone("MULTI")
        for last in (words, ("EXEC",)):
            try:
                someone(*last)
            except ServerError:
                pass
        kind = r("TYPE", "secret")
        return answers, kind, r("GET", "secret") if kind == "string" else None

    def test_to_the_destination_are_asked_for(self):
        servers = self.server("size", "8M"), self.server(pool=False, name="plain")
        beds = []
        for server in servers:
            r, someone = server.client(), server.client()
            r(*self.USER)
            someone("AUTH", "someone", "")
            beds.append((r, someone))
        for words in FORBIDDEN:
            ours, theirs = (self.told(*bed, words) for bed in beds)
            self.assertEqual(ours, theirs, words)
            self.assertEqual(ours[1:], ("string", b"kept"), words)
        for words in HIDDEN:
            self.assertEqual(self.told(*beds[0], words), ([True, True], "string", b"kept"), words)


if __name__ == "__main__":
    unittest.main()
