# SPDX-License-Identifier: Apache-2.0
"""Which programs sources call, read from their text: Python, shell, Makefile, playbooks, CMake, C.

In Python a command is a call of something that runs programs (`run("ip", ...)`, `Popen(["tcpdump", ...])`,
`which("clang")`), or a list or tuple of a word and an option, wherever that ends up. What such a command runs in its
turn (`ip netns exec a iperf3`, `nsenter -n cat`, `sh -c "tc ... && tc ..."`) is called, too. A name that is put
together at run time is not seen.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import dropwhile, groupby
from pathlib import Path

import yaml


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


RUNNERS = words("""
    run call Popen check_call check_output which execv execvp execvpe isolated inside started
""")
PROGRAM = re.compile(r"[a-z][a-z0-9+._-]*")
Texts = dict[str, str | None]  # by the module's name for it
COMPILERS = {"C": "cc", "CXX": "c++"}
# Programs that run the program that follows their options.
WRAPPERS = words("""
    chroot command env exec nice nohup nsenter setpriv setsid sudo taskset timeout unshare xargs
""")
SHELLS = words("bash sh")
# What a shell does itself.
BUILTINS = words("""
    alias break case cd command continue do done echo elif else esac eval exec exit export false fi for if in kill local
    printf pwd read return set shift test then time trap true type ulimit umask unset until wait while
""")
BETWEEN = words("do then else if while elif")


def in_file(path: Path) -> set[str]:
    """The programs that a file calls; nothing where it is of no kind that we read."""
    text = path.read_text(errors="replace")
    if path.suffix == ".py":
        return set(in_python(text))
    if path.suffix in (".yml", ".yaml"):
        return set(in_playbook(text))
    if path.suffix in (".c", ".cpp", ".hpp", ".h"):
        return set(re.findall(r'exec[lv]p?e?\("([^"]+)"', text)) | set(re.findall(r'(?:system|popen)\("(\w+)', text))
    if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
        languages = re.search(r"^project\(.* LANGUAGES (.*)\)", text, re.MULTILINE)
        compilers = {COMPILERS[language] for language in languages[1].split()} if languages else set()
        return compilers | set(re.findall(r"find_program\(\w+ NAMES ([\w+-]+)", text))
    if path.name == "Makefile":
        return set(in_shell(recipes(text)))
    return set(in_shell(text)) if text.startswith("#!/bin/sh") else set()


def in_python(text: str) -> Iterator[str]:
    """The programs that Python calls."""
    tree = ast.parse(text)
    texts: Texts = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = _text(node.value, texts)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in RUNNERS]
    for call in calls:
        command = _words(call.args, texts)
        yield from _of_words(command)
        # As in `run(lab, "s0", "pgrep -x cat")`.
        for word in command[1:]:
            yield from in_shell(word) if word and " " in word and "\n" not in word else ()
    passed = {call.args[0].id for call in calls if call.args and isinstance(call.args[0], ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in passed:
            yield from _of_words(_words([node.value], texts))
        elif isinstance(node, ast.List | ast.Tuple):
            command = _words(node.elts, texts)
            if any(word and re.match(r"--?\w", word) for word in command):
                yield from _of_words(command)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _words(elements: Sequence[ast.expr], texts: Texts) -> list[str | None]:
    """Constant words; None for each that is known at run time only. A first element that is a list stands for all."""
    if elements and isinstance(elements[0], ast.List | ast.Tuple):
        return _words(elements[0].elts, texts)
    return [_text(element, texts) for element in elements]


def _text(element: ast.expr, texts: Texts) -> str | None:
    """Of a text, or the module's name for one; what a formatted one leaves open is a word of its own."""
    if isinstance(element, ast.Constant) and isinstance(element.value, str):
        return element.value
    if isinstance(element, ast.Name):
        return texts.get(element.id)
    if isinstance(element, ast.FormattedValue):
        return _text(element.value, texts) or "0"
    if isinstance(element, ast.JoinedStr):
        return "".join(_text(part, texts) or "" for part in element.values)
    return None


def _of_words(words: Sequence[str | None]) -> Iterator[str]:
    """The program that a command calls, and those that it calls in its turn."""
    first = words[0] if words else None
    if first is None and "sh" in words:
        yield from _of_words(words[words.index("sh") :])
    if first is None or first.startswith((".", "{{")):
        return
    if " " in first:
        yield from in_shell(first) if "\n" not in first else ()
        return
    program = Path(first).name
    if not PROGRAM.fullmatch(program):
        return
    yield program
    rest = words[1:]
    if program in SHELLS and "-c" in rest:
        yield from in_shell(rest[rest.index("-c") + 1] or "")
    elif program == "ip" and list(rest[:2]) == ["netns", "exec"]:
        yield from _of_words(rest[3:])
    elif program in WRAPPERS:
        yield from _of_words(_after_options(rest))


def _after_options(words: Sequence[str | None]) -> Sequence[str | None]:
    """What follows options and their values, as far as values are numbers, capitals, or known at run time only."""
    for number, word in enumerate(words):
        if word is not None and not re.match(r"[-\d$A-Z]", word):
            return words[number:]
    return []


def in_shell(script: str) -> Iterator[str]:
    """The programs that a shell script calls: the first words of its simple commands."""
    functions = dict(re.findall(r"^(\w+)\(\) \{(.*?)\}$", script, re.MULTILINE | re.DOTALL))
    for command in _simple_commands(script):
        words = [*dropwhile(re.compile(r"\w+=").match, command)]
        if words and re.search(r'^ *"\$@"', functions.get(words[0], ""), re.MULTILINE):
            words.pop(0)  # a function that runs what it is given
        yield from (program for program in _of_words(words) if program not in BUILTINS | functions.keys())


def _simple_commands(script: str) -> Iterator[list[str]]:
    """Words of each, without comments, redirections and patterns; what stands in `$(...)` is a script of its own."""
    joined = re.sub(r"\d?[<>]+&? ?[^\s;|&()]+|^\s*[\w* |-]+\)|\\\n", " ", script, flags=re.MULTILINE)
    for inner in re.findall(r"\$\(([^()]*(?:\([^()]*\))?[^()]*)\)", joined):
        yield from _simple_commands(inner)
    lexer = shlex.shlex(re.sub(r"\$\([^()]*\)", "$0", joined), posix=True, punctuation_chars=";&|(){}\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    for ends, words in groupby(lexer, lambda word: word in BETWEEN or set(word) <= set(";&|(){}\n!")):
        if not ends:
            yield [*words]


def recipes(makefile: str) -> str:
    """A Makefile's recipes as one script, with its variables left out."""
    lines = [line[1:].lstrip("@-").replace("$(SUDO)", "sudo") for line in makefile.splitlines() if line[:1] == "\t"]
    return "\n".join(re.sub(r"\$\([^)]*\)", "./0", line.replace("$$", "$")) for line in lines)


def in_playbook(text: str) -> Iterator[str]:
    """The programs that tasks call by `command`, as a list or a line."""
    for document in yaml.safe_load_all(text):
        yield from _of_tasks(document)


def _of_tasks(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("ansible.builtin.command", "ansible.builtin.shell"):
                words = value.get("argv", value.get("cmd")) if isinstance(value, dict) else value
                yield from _of_words(words if isinstance(words, list) else words.split())
            else:
                yield from _of_tasks(value)
    elif isinstance(node, list):
        for each in node:
            yield from _of_tasks(each)
