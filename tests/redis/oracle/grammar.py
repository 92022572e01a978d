"""Commands from templates: commands.txt has one line for each form, and this draws from it.

  WORD        itself             k:KIND      a key; KIND is what it mostly has
  <name>      Draw.name()        a | b       one of these, within the brackets
  ( ... )     a group            ( ... )+    1 to 4 times       ( ... )*  none to 3 times
  [ ... ]     at times           { a | b }   options: some of these, in any order, at times twice
  #( ... )    their number, and the group as often; the number is wrong at times

A number before a line is its weight.
"""

import os
import re

from . import draw

HERE = os.path.dirname(os.path.abspath(__file__))
CLOSING = {"(": ")", "[": "]", "{": "}", "#(": ")"}


class Choice:
    def __init__(self, kind, options):
        self.kind, self.options, self.repeat = kind, options, ""


def parse(tokens, closing=None):
    """Options up to the closing bracket; each a list of words and groups."""
    options = [[]]
    while tokens:
        token = tokens.pop(0)
        if closing and token.rstrip("+*") == closing:
            return options, token[len(closing):]
        if token == "|":
            options.append([])
        elif token in CLOSING:
            group = Choice(token, None)
            group.options, group.repeat = parse(tokens, CLOSING[token])
            options[-1].append(group)
        else:
            options[-1].append(token)
    if closing:
        raise ValueError(f"no {closing}")
    return options, ""


class Grammar:
    def __init__(self, path=os.path.join(HERE, "commands.txt")):
        self.forms, self.weights = [], []
        with open(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                weight, rest = re.match(r"(\d*)\s*(.*)", line.strip()).groups()
                try:
                    self.forms.append(parse(rest.split())[0][0])
                except ValueError as wrong:
                    raise SystemExit(f"{path}:{number}: {wrong}") from None
                self.weights.append(int(weight or 1))
        self.by_name = {}
        for form in self.forms:
            self.by_name.setdefault(form[0].lower(), []).append(form)
        self.cumulative = [sum(self.weights[:i + 1]) for i in range(len(self.weights))]

    def command(self, rng, name=None):
        """The words of one command, as its form has them."""
        form = rng.choice(self.by_name[name]) if name else rng.choices(self.forms, cum_weights=self.cumulative)[0]
        return self.fill(rng, form)

    def some(self, rng, name=None):
        """One as a client may send it: with a share of malformed ones."""
        return bounded(rng, malformed(rng, self.command(rng, name)) if rng.random() < 0.07 else self.command(rng, name))

    def fill(self, rng, form):
        words = []
        for part in form:
            if isinstance(part, Choice):
                words += self.fill_group(rng, part)
            elif part.startswith("k:"):
                words.append(rng.key(part[2:]))
            elif part.startswith("<"):
                words.append(getattr(rng, part[1:-1])())
            else:
                words.append(part.encode() if rng.random() < 0.9 else part.lower().encode())
        return words

    def fill_group(self, rng, group):
        if group.kind == "[":
            return self.fill(rng, rng.choice(group.options)) if rng.random() < 0.4 else []
        if group.kind == "{":
            many = rng.choices([0, 1, 2, 3, 5], [30, 40, 20, 8, 2])[0]
            chosen = rng.choices(group.options, k=many) if rng.random() < 0.2 else rng.sample(group.options, min(many, len(group.options)))
            return [word for option in chosen for word in self.fill(rng, option)]
        times = {"+": rng.randint(1, 4) if rng.random() < 0.6 else 1, "*": rng.randint(0, 3)}.get(group.repeat, 1)
        if group.kind == "#(":
            times = rng.randint(1, 3)
        words = [word for _ in range(times) for word in self.fill(rng, rng.choice(group.options))]
        if group.kind == "#(":
            words.insert(0, rng.choice([b"0", b"-1", b"5", b"a", b"1", b"2", b"9223372036854775807"]) if rng.random() < 0.08 else b"%d" % times)
        return words


def malformed(rng, words):
    words = list(words)
    how = rng.choice([0, 0, 1, 2, 3, 4, 5, 6])
    place = rng.randrange(len(words))
    if how == 0:
        return words[:1]
    if how == 1:
        return words[:max(place, 1)]
    if how == 2 and place:
        del words[place]
    elif how == 3:
        words.insert(place + 1, rng.choice(draw.STRANGE_WORDS))
    elif how == 4 and place:
        words[place] = rng.value()
    elif how == 5 and place > 1:
        other = rng.randrange(1, place)
        words[place], words[other] = words[other], words[place]
    else:
        words.append(rng.choice(words[1:] or words))
    return words


LONG = {b"setbit", b"setrange", b"bitfield"}  # one of tens of megabytes is an event of its own
TIMED = {b"setex", b"psetex", b"getex", b"expire", b"pexpire", b"restore"}
BLOCKING = {b"blpop": -1, b"brpop": -1, b"bzpopmin": -1, b"bzpopmax": -1, b"blmove": 5, b"brpoplpush": 3, b"blmpop": 1, b"bzmpop": 1}


def bounded(rng, words):
    """No short time to live, which would end between the two servers; no client that waits for long; no count kept in a value."""
    name = words[0].lower()
    # Stock keeps the count of one key in its value, the module does not; and asks for no right to the one key of PFMERGE.
    if name in (b"pfcount", b"pfmerge") and len(words) == 2:
        return [*words, words[1]]
    if name in LONG:
        return [w[:6] if isinstance(w, bytes) and 7 < len(w) < 11 and w.lstrip(b"#").isdigit() and not w.endswith(b"4294967296") else w for w in words]
    timed = name in TIMED or name == b"set" and any(isinstance(w, dict) or w.lower() in (b"ex", b"px") for w in words[3:])
    if timed:
        words = [b"1%s0000" % w if i > 1 and isinstance(w, bytes) and w.isdigit() and len(w) < 6 and int(w) else w for i, w in enumerate(words)]
    if name in BLOCKING and len(words) > 2:
        place = BLOCKING[name]
        if -len(words) < place < len(words) and isinstance(words[place], bytes):
            try:
                long = not float(words[place]) == 0.01 and 0 <= float(words[place]) < 1e15
            except ValueError:
                long = False
            if long:
                words = list(words)
                words[place] = b"0.01"
    return words
