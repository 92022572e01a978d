"""C++ text that clang-format has laid out: its functions, its classes and their members, found by matching braces.

For tools/lint and tools/shape. No parser: it needs balanced braces and knows no macro that opens or closes one. Line
numbers begin at 1.
"""

import bisect
import collections
import re

LITERALS = re.compile(r'R"([^(]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
                      r'|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
SCOPE = re.compile(r"^(requires\b[^{]*?\b)?(inline\s+)?(namespace|extern|class|struct|union|enum)\b")
ACCESS = re.compile(r"\s*\b(public|private|protected)\s*:")
ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)")
CLASS = re.compile(r"(?<!enum )\b(?:class|struct)\s+(?:alignas\s*\([^()]*\)\s*|\[\[.*?\]\]\s*)*(\w+)\s*(?:final\b\s*)?"
                   r"(?::(?!:)([^{;()]*))?\{")
NO_DATA = re.compile(r"(using|typedef|friend|static|static_assert|enum|template|class|struct|union|requires|concept)\b")

# name: qualified as it is written, without template arguments. body: without literals and comments.
Function = collections.namedtuple("Function", "first_line lines name")
Class = collections.namedtuple("Class", "name bases first_line last_line body")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_literals(text):
    """The text with string literals, comments and preprocessor lines replaced by as many spaces."""
    return LITERALS.sub(blank, text)


def without_comments(text):
    return LITERALS.sub(lambda m: blank(m) if m.group(0).startswith(("//", "/*")) else m.group(0), text)


def without_template(words):
    """What follows the `template <...>` that opens a declaration's text."""
    while words.startswith("template"):
        depth = 0
        for at, c in enumerate(words):
            depth += (c == "<") - (c == ">")
            if c == ">" and depth == 0:
                break
        words = words[at + 1:].lstrip()
    return words


def without_template_arguments(words):
    """The text without anything in angle brackets."""
    words = words.replace("->", "")
    while True:
        shorter = re.sub(r"<[^<>]*>", "", words)
        if shorter == words:
            return words
        words = shorter


def line_starts_of(code):
    return [0] + [m.end() for m in re.finditer("\n", code)]


def function_name(words):
    words = without_template_arguments(ATTRIBUTES.sub("", without_template(words)))
    found = re.search(r"([\w:~]+|operator\W+)\s*\(", words)
    return found.group(1) if found else ""


def functions(text):
    """Yields each Function that is not inside another."""
    code = without_literals(text)
    line_starts = line_starts_of(code)
    head = 0  # where the text before the next brace begins
    inside = None  # (depth, start, words) of the function being read
    depth = 0
    for m in re.finditer(r"[{};]", code):
        at, what = m.start(), m.group(0)
        if what == "{":
            depth += 1
            label = ACCESS.match(code, head, at)
            head = label.end() if label else head
            words = code[head:at].strip()
            if inside is None and "(" in words and not SCOPE.match(without_template(words)):
                inside = (depth, code.index(words, head), words)
        elif what == "}":
            if inside and inside[0] == depth:
                first = bisect.bisect_right(line_starts, inside[1])
                yield Function(first, bisect.bisect_right(line_starts, at) - first + 1, function_name(inside[2]))
                inside = None
            depth -= 1
        head = at + 1


def end_of_braces(code, open_at):
    """Where the brace that opens at `open_at` is closed."""
    depth = 0
    for m in re.finditer(r"[{}]", code[open_at:]):
        depth += 1 if m.group(0) == "{" else -1
        if depth == 0:
            return open_at + m.start()
    return len(code)


def base_names(words):
    """The names in a list of bases, without access, namespace and template arguments."""
    words = re.sub(r"\b(public|protected|private|virtual|typename)\b", "", without_template_arguments(words or ""))
    return [base.split("::")[-1].strip() for base in words.split(",") if base.strip()]


def classes(text):
    """Yields each Class, nested ones too."""
    code = without_literals(text)
    line_starts = line_starts_of(code)
    for m in CLASS.finditer(code):
        end = end_of_braces(code, m.end() - 1)
        first, last = (bisect.bisect_right(line_starts, at) for at in (m.start(), end))
        yield Class(m.group(1), base_names(m.group(2)), first, last, code[m.end():end])


def is_function(statement):
    """Whether a member's declaration is a function's: a parenthesis comes before any initializer."""
    if re.search(r"\boperator\b", statement):
        return True
    is_pointer = re.match(r"[^={(]*\(\s*\*", statement)
    return bool(re.match(r"[^={]*\(", statement)) and not is_pointer


def statements(body):
    """Yields what a class body declares, without what is inside braces; a function's body ends its declaration."""
    said, at = "", 0
    while at < len(body):
        c = body[at]
        if c == "{":
            at = end_of_braces(body, at)
            head = declared(said)
            said += "{}"
            if is_function(head) and not head.startswith(("class", "struct", "enum", "union")):
                yield said
                said = ""
        elif c == ";":
            yield said
            said = ""
        else:
            said += c
        at += 1


def declared(statement):
    """A member's declaration without access labels, attributes and template arguments."""
    words = ATTRIBUTES.sub("", re.sub(r"\b(public|private|protected)\s*:(?!:)", "", statement))
    return without_template_arguments(without_template(words.strip())).strip()


def data_members(body):
    """How many data members a class body declares, without static ones and those of nested classes."""
    count = 0
    for statement in statements(body):
        words = re.sub(r"^(mutable|volatile|const)\s+", "", declared(statement))
        unnamed = re.match(r"(class|struct|union|enum)\b[^{]*\{\}\s*(\w+)", words)  # struct { ... } member;
        if unnamed or (words and not NO_DATA.match(words) and not is_function(words)):
            count += 1 + re.sub(r"\([^()]*\)|\{\}", "", words).count(",")
    return count
