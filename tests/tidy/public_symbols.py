"""Finds what the public headers declare for callers: functions, types and aliases. It reads C++ roughly, but well enough for these headers."""

import re
from typing import List, Tuple

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\S")
# These words may come before a parenthesis and are not names of functions.
NO_NAMES = {"requires", "noexcept", "decltype", "alignas", "explicit", "sizeof", "static_assert", "operator", "__attribute__"}


def without_comments(text: str) -> str:
    """Returns the same lines, with blanks in place of what is not code."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return DIRECTIVE.sub(blank, COMMENT_OR_STRING.sub(blank, text))


Token = Tuple[str, int]  # its text, and its line


def tokens_of(text: str) -> List[Token]:
    tokens = []
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        tokens += [(match.group(), number) for match in TOKEN.finditer(line)]
    return tokens


def after_template(statement: List[Token]) -> List[Token]:
    """Returns the statement without the `template <...>` at its front."""
    while statement and statement[0][0] == "template":
        depth = 0
        for at, (word, _) in enumerate(statement[1:], 1):
            depth += {"<": 1, ">": -1}.get(word, 0)
            if depth == 0:
                break
        statement = statement[at + 1 :]
    return statement


def named_by(statement: List[Token]) -> List[Token]:
    """Returns what a statement of a namespace or a class declares, if it is a function, a type, an alias or a concept."""
    statement = after_template(statement)
    words = [word for word, _ in statement]
    if not words or words[0] in ("friend", "static_assert", "~", "namespace"):
        return []
    if words[0] in ("class", "struct", "union", "enum", "using", "concept"):
        if words[0] == "using" and "=" not in words:
            return []
        end = next((at for at, word in enumerate(words) if word in (":", "=", "{", ";")), len(words))
        skipped = {"class", "struct", "union", "enum", "using", "concept", "final", "nodiscard"}
        return [token for token in statement[:end] if re.match(r"[A-Za-z_]", token[0]) and token[0] not in skipped][:1]
    depth = 0
    for at, (word, _) in enumerate(statement):
        if word == "(" and depth == 0:
            before = statement[at - 1] if at else ("", 0)
            if re.match(r"[A-Za-z_]", before[0]) and before[0] not in NO_NAMES and (at < 2 or words[at - 2] not in ("~", "operator")):
                return [before]
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth -= 1
        elif word == "=" and depth == 0:
            return []
    return []


def cpp_symbols(text: str) -> List[Token]:
    """Returns the names that a header offers, each with its line, without those in a namespace `detail` or `native` and those that are not public."""
    found: List[Token] = []
    # For each open brace, this says whether callers may use what is in it; None where declarations are not read at all.
    scopes: List[object] = []
    access: List[bool] = []
    statement: List[Token] = []
    parentheses = 0

    def is_public() -> bool:
        return all(scope is True for scope in scopes) and all(access)

    tokens = tokens_of(text)
    for at, token in enumerate(tokens):
        word = token[0]
        if None in scopes:
            if word == "{":
                scopes.append(None)
                access.append(True)
            elif word == "}":
                scopes.pop()
                access.pop()
                # The body of a function ends its declaration; other initialisers go on until their semicolon.
                if None not in scopes and (at + 1 == len(tokens) or tokens[at + 1][0] not in (";", ",", ")", "{")):
                    statement = []
            continue
        if word in "([":
            parentheses += 1
        elif word in ")]":
            parentheses -= 1
        if word == "{":
            head = [each for each, _ in after_template(statement)]
            if is_public():
                found += named_by(statement)
            if "namespace" in head[:2] or head[:1] == ["extern"]:
                scopes.append("detail" not in head and "native" not in head)
                access.append(True)
                statement = []
            elif head and head[0] in ("class", "struct", "union") and parentheses == 0:
                scopes.append(True)
                access.append(head[0] != "class")
                statement = []
            else:
                scopes.append(None)
                access.append(True)
        elif word == "}":
            if scopes:
                scopes.pop()
                access.pop()
            statement = []
        elif word == ";" and parentheses == 0:
            if is_public():
                found += named_by(statement)
            statement = []
        elif word == ":" and [each for each, _ in statement] in (["public"], ["private"], ["protected"]):
            access[-1] = statement[0][0] == "public"
            statement = []
        else:
            statement.append(token)
    unique = {}
    for name, line in found:
        unique.setdefault(name, line)
    return sorted(unique.items(), key=lambda item: item[1])


def c_symbols(text: str) -> List[Token]:
    """Returns the functions that the C library exports."""
    found = []
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        found += [(match.group(1), number) for match in re.finditer(r"\b(ringlet_\w+)\s*\(", line)]
    return found
