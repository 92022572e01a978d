"""Arguments drawn from a seed: few keys, so that commands meet; values at the edges of what Redis takes.

A word of a command is bytes, or a dict that is resolved when it is sent:
  {"now": MS}                     the time in ms, plus so many; {"now_s": S} in seconds
  {"dump": KEY, "mutate": [...]}  what stock Redis dumps of the key, changed, with a right checksum
  {"own": KEY}                    what each server itself dumps of the key
  {"client": NUMBER}              the id of that client's connection
"""

import random

KINDS = {"str": [b"s1", b"s2"], "num": [b"n1", b"n2"], "hash": [b"h1", b"h2"], "list": [b"l1", b"l2"], "set": [b"t1", b"t2"],
         "zset": [b"z1", b"z2"], "geo": [b"g1", b"g2"], "hll": [b"y1", b"y2"]}
# Names that are also words of commands, and those that are no text.
ODD_KEYS = [b"by", b"get", b"store", b"limit", b"weights", b"1", b"", b"\x00\xff\r\n", b"k" * 300, b"x1"]
LEX_KEYS = [b"e1", b"e2"]  # sorted sets whose scores are equal: only these have an order by members, and no other command names them
ALL_KEYS = [k for keys in KINDS.values() for k in keys] + ODD_KEYS

INTEGERS = [b"0", b"1", b"-1", b"2", b"3", b"7", b"10", b"100", b"-100", b"2147483647", b"4294967296", b"9223372036854775807",
            b"-9223372036854775808", b"9223372036854775806"]
NOT_INTEGERS = [b"9223372036854775808", b"-9223372036854775809", b"1.5", b"abc", b"", b" 1", b"1 ", b"+1", b"01", b"-0", b"0x10", b"1e3",
                b"1\x00", b"nan", b"99999999999999999999999"]
FLOATS = [b"0", b"1", b"-1", b"0.1", b"1.5", b"-2.25", b"3.0", b"5e-324", b"1e308", b"-1e308", b"1.7976931348623157e308", b"1e17",
          b"123456789012345678", b"0.000001", b"1e-7", b"1e256", b"-1e300", b"1e22", b"9007199254740993", b"-0", b"-0.0", b"1e-300"]
LONG_FLOATS = [b"1e400", b"-1e400", b"1e-400", b"1e492", b"1e493", b"1e600", b"-1e4000", b"1e4931", b"1e4932", b"-1e4932", b"1e5000",
               b"1" + b"0" * 254, b"1" + b"0" * 255, b"1" + b"0" * 300, b"9" * 4932, b"0." + b"3" * 252, b"0." + b"3" * 254, b"1e-4940"]
NOT_FLOATS = [b"inf", b"-inf", b"+inf", b"infinity", b"nan", b"-nan", b"abc", b"", b" 1", b"1 ", b"+1", b"0x10", b"0x1p3", b"1e", b"1\x00",
              b"1,5", b"(1", b"--1", b"1.", b".5", b"0x", b"1e+5", b"\t1"]
SMALL_FILLS = [b"x", b"ab", b"\x00", b"7", b"\xff\xfe"]
SIZES = [0, 1, 2, 8, 20, 44, 45, 63, 64, 65, 127, 128, 254, 255, 256, 257, 300, 1000, 4095, 4096, 4097, 20000]
UNITS = [b"m", b"km", b"mi", b"ft", b"KM", b"yd"]
STRANGE_WORDS = [b"NX", b"XX", b"GET", b"EX", b"PX", b"KEEPTTL", b"COUNT", b"LIMIT", b"WITHSCORES", b"STORE", b"BY", b"WEIGHTS", b"AGGREGATE",
                 b"MATCH", b"REV", b"LEFT", b"0", b"1", b"-1", b"a", b"", b"*", b"[", b"(", b"\x00"]


class Draw(random.Random):
    """Each method named as in commands.txt draws one word."""

    def one_of(self, words, *rare):
        """Mostly of the first list; now and then of the others."""
        if rare and self.random() < 0.15:
            return self.choice(self.choice(rare))
        return self.choice(words)

    def key(self, kind):
        chance = self.random()
        if kind == "lex":
            return self.choice(LEX_KEYS) if chance < 0.95 else b"none"
        if kind in KINDS and chance < 0.82:
            return self.choice(KINDS[kind])
        return self.choice(ODD_KEYS if chance > 0.95 else ALL_KEYS)

    def filled(self):
        fill = self.choice(SMALL_FILLS)
        size = self.choice(SIZES if self.random() < 0.3 else SIZES[:9])
        return (fill * (size // len(fill) + 1))[:size]

    def value(self):
        chance = self.random()
        if chance < 0.35:
            return b"v%d" % self.randrange(10)
        if chance < 0.6:
            return self.filled()
        if chance < 0.62:
            return self.choice(LONG_FLOATS)
        return self.choice(self.choice([INTEGERS, FLOATS, NOT_INTEGERS, NOT_FLOATS]))

    def member(self):
        chance = self.random()
        if chance < 0.7:
            return b"m%d" % self.randrange(6)
        return b"%d" % self.randrange(5) if chance < 0.9 else self.value()

    field = member

    def int(self):
        return self.one_of(INTEGERS, NOT_INTEGERS)

    def float(self):
        return self.one_of(FLOATS, LONG_FLOATS, NOT_FLOATS, INTEGERS)

    def score(self):
        return self.one_of(FLOATS[:8] + [b"2", b"3", b"4", b"inf", b"-inf"], LONG_FLOATS, NOT_FLOATS, FLOATS)

    def bound(self):
        """Of a range by score."""
        return (b"(" if self.random() < 0.3 else b"") + self.one_of([b"-inf", b"+inf", b"0", b"1", b"2", b"3", b"1.5"], FLOATS, LONG_FLOATS, NOT_FLOATS)

    def lexbound(self):
        return self.one_of([b"-", b"+", b"[m1", b"(m1", b"[m4", b"(m3", b"[", b"("], [b"m1", b"", b"[\xff", b"-inf"])

    def index(self):
        return self.one_of([b"0", b"1", b"2", b"-1", b"-2", b"-3", b"5", b"-100", b"100"], INTEGERS, NOT_INTEGERS)

    def count(self):
        return self.one_of([b"0", b"1", b"2", b"3", b"10"], [b"-1", b"-2", b"100", b"1000"], NOT_INTEGERS)

    def number(self):
        """A count that bounds what is answered."""
        return self.one_of([b"1", b"2", b"5", b"0"], [b"-1", b"-3", b"-9223372036854775808", b"9223372036854775807"], NOT_INTEGERS)

    def limit(self):
        return self.one_of([b"0", b"1", b"2", b"-1"], INTEGERS, NOT_INTEGERS)

    def bit(self):
        return self.one_of([b"0", b"1"], [b"2", b"-1", b"a", b"01"])

    def bitoffset(self):
        return self.one_of([b"0", b"1", b"7", b"8", b"9", b"63", b"100", b"2047"], [b"300000", b"4294967296", b"-1", b"8388607"], NOT_INTEGERS)

    def offset(self):
        return self.one_of([b"0", b"1", b"2", b"5", b"20", b"255", b"4090"], [b"100000", b"536870912", b"-1", b"9223372036854775807"], NOT_INTEGERS)

    def fieldtype(self):
        return self.one_of([b"u8", b"i8", b"u1", b"i16", b"u16", b"u63", b"i64", b"u3"], [b"u64", b"i65", b"x8", b"u", b"i0"])

    def fieldoffset(self):
        return self.one_of([b"0", b"1", b"#0", b"#1", b"#3", b"7", b"100"], [b"-1", b"#-1", b"#", b"abc", b"#4294967296", b"4294967296", b"#100000"])

    def longitude(self):
        return self.one_of([b"1", b"2", b"13.361389", b"15.087269", b"-180", b"180"], [b"181", b"abc", b"nan", b"1e400", b"-0"])

    def latitude(self):
        return self.one_of([b"1", b"2", b"38.115556", b"37.502669", b"0", b"85"], [b"86", b"abc", b"inf", b"", b"-0"])

    def radius(self):
        return self.one_of([b"100", b"1000", b"20000", b"0", b"0.5"], [b"-1", b"abc", b"1e400", b"inf"])

    def unit(self):
        return self.one_of(UNITS[:4], UNITS)

    def weight(self):
        return self.one_of([b"1", b"2", b"0.5", b"-1", b"0"], LONG_FLOATS, NOT_FLOATS, FLOATS)

    def seconds(self):
        return self.one_of([b"100", b"1000", b"100000"], [b"0", b"-1", b"-100", b"9223372036854775807", b"9223372036854775", b"-9223372036854775808"], NOT_INTEGERS)

    def milliseconds(self):
        return self.one_of([b"100000", b"1000000", b"100000000"], [b"0", b"-1", b"9223372036854775807", b"-9223372036854775808"], NOT_INTEGERS)

    def at(self):
        return self.one_of([{"now_s": 100}, {"now_s": 100000}], [{"now_s": -100}, b"0", b"-1", b"9223372036854775807"], NOT_INTEGERS)

    def atms(self):
        return self.one_of([{"now": 100000}, {"now": 100000000}], [{"now": -100}, b"0", b"-1", b"9223372036854775807"], NOT_INTEGERS)

    def timeout(self):
        return self.one_of([b"0.01"], [b"-1", b"abc", b"", b"1e400", b"nan", b"inf"])

    def pattern(self):
        return self.one_of([b"*", b"m*", b"?1", b"[a-m]*", b"*[12]"], [b"", b"[", b"\\", b"[^m]*", b"**1", b"m[1-", b"[z-a]*", b"\\*"])

    def by(self):
        return self.one_of([b"n*", b"h1->m*", b"h*->m1"], [b"*", b"h1->*", b"*->", b"**"])

    def of(self):
        return self.one_of([b"#", b"s*", b"n*", b"h1->m*", b"h*->m1"], [b"*", b"", b"s1", b"->*"])

    def db(self):
        return self.one_of([b"0", b"1", b"2", b"3"], [b"4", b"-1", b"abc", b"", b"64"])

    def sub(self):
        return self.one_of([b"ENCODING"], [b"HELP", b"ENCODINGS", b"x"])

    def payload(self):
        """Of RESTORE: that of a key, whole or changed."""
        key = self.key("any").decode("latin-1")
        if self.random() < 0.4:
            return {"own": key}
        return {"dump": key, "mutate": self.mutations() if self.random() < 0.6 else []}

    def mutations(self):
        """Changes of a payload: each a name, a place as a share of its length, and a byte."""
        most = self.choice([1, 1, 1, 2, 4])
        return [[self.choice(["flip", "set", "cut", "drop", "add", "swap", "zero"]), round(self.random(), 4), self.randrange(256)] for _ in range(most)]
