"""Whether two answers to one command are the same, but for the differences that tolerated.txt lists."""

import fnmatch
import os
import re

from . import wire

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_LATER = {"(ms)": 1500, "(s)": 2}  # between the two servers, for one command


class Rule:
    def __init__(self, command, stock, module, reason):
        self.command = re.compile(fnmatch.translate(command), re.S | re.I)
        self.stock, self.module, self.reason = stock, module, reason
        self.texts = [re.compile(fnmatch.translate(side), re.S) for side in (stock, module)]
        self.used = 0


def command_line(words):
    """A command as the rules see it: its name in lower case."""
    told = [w.decode("latin-1") if isinstance(w, bytes) else str(w) for w in words]
    return " ".join([told[0].lower(), *told[1:]])


def of_two(node):
    return list(zip(node[1][::2], node[1][1::2]))


def in_any_order(a, b):
    return a[0] == b[0] and a[1] is not None and b[1] is not None and sorted(map(repr, a[1])) == sorted(map(repr, b[1]))


def pairs_in_any_order(a, b):
    if a[0] != b[0] or not a[1] or not b[1]:
        return False
    return sorted(map(repr, of_two(a))) == sorted(map(repr, of_two(b)))


def all_at_once(a, b):
    """Of SCAN and its relatives: elements in any order, if both cursors have come to the end."""
    if not all(n[0] == b"*" and len(n[1] or ()) == 2 for n in (a, b)):
        return False
    return any(wire.text(n[1][0]) != b"0" for n in (a, b)) or in_any_order(a[1][1], b[1][1])


def of_one_form(a, b):
    """For random choices: the same kind and, of arrays, the same number."""
    if a[0] != b[0] or (a[1] is None) != (b[1] is None):
        return False
    return a[0] not in wire.AGGREGATES or len(a[1] or ()) == len(b[1] or ())


def near(most):
    def are_near(a, b):
        return a[0] == b[0] == b":" and int(a[1]) > 0 and int(b[1]) > 0 and abs(int(a[1]) - int(b[1])) <= most
    return are_near


def without_sign_of_zero(a, b):
    """The same, where 0 may be the module's for -0 of stock."""
    if a[0] in wire.AGGREGATES and a[0] == b[0] and a[1] and b[1]:
        return len(a[1]) == len(b[1]) and all(map(without_sign_of_zero, a[1], b[1]))
    return a == b or a[0] == b[0] and (a[1], b[1]) == (b"-0", b"0")


FORMS = {"(zero without a sign)": without_sign_of_zero, "(any order)": in_any_order, "(pairs in any order)": pairs_in_any_order, "(scanned)": all_at_once, "(any)": of_one_form,
         **{form: near(most) for form, most in MOST_LATER.items()}}


class Judge:
    def __init__(self, path=os.path.join(HERE, "tolerated.txt")):
        self.rules = []
        with open(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                parts = [part.strip() for part in line.rstrip("\n").split(" | ")]
                if len(parts) != 4 or not all(parts):
                    raise SystemExit(f"{path}:{number}: a line has a command, stock's answer, the module's, and a reason, with ` | ` between")
                self.rules.append(Rule(*parts))

    def same(self, words, stock, module, inner=()):
        """`inner`: the commands whose answers are the elements of an array, those of an EXEC or of a script, as
        (words, inner)."""
        return stock == module or self.same_trees(words, wire.tree(stock)[0], wire.tree(module)[0], inner)

    def same_trees(self, words, stock, module, inner=()):
        if stock == module:
            return True
        if inner and stock[0] == module[0] == b"*" and stock[1] is not None and module[1] is not None:
            if len(stock[1]) == len(module[1]) == len(inner):
                return all(self.same_trees(*of[:1], a, b, *of[1:]) for of, a, b in zip(inner, stock[1], module[1]))
        return self.is_tolerated(command_line(words), stock, module)

    def is_tolerated(self, line, stock, module):
        told = [plain(node) for node in (stock, module)]
        for rule in self.rules:
            if not rule.command.match(line):
                continue
            form = FORMS.get(rule.stock)
            if form(stock, module) if form else all(map(lambda r, t: r.match(t), rule.texts, told)):
                rule.used += 1
                return True
        return False


def plain(node):
    """An answer as the rules see it: errors, texts and numbers as they are."""
    kind, content = node
    if content is None:
        return "(null)"
    if kind in wire.AGGREGATES:
        return "[" + ", ".join(map(plain, content)) + "]"
    return content.decode("latin-1")
