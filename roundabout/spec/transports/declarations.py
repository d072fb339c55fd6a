# SPDX-License-Identifier: Apache-2.0
"""Reader of a transport's declarations: the macros of transports/common/declare.h in its source."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, cast, get_args

from roundabout.spec.errors import SpecError
from roundabout.spec.transports.queues import QUEUES, QueueName

PROGRAM, MODEL = ".bpf.c", ".model.h"
"""Suffixes of a transport's main file: an eBPF program, or a header of a transport that models alone play."""

ChosenBy = Literal["experiment", "testbed", "line_rate", "network", "nic"]
FACTS = ("compute_us",)
"""Names in rules other than parameters: `compute_us` is a job's computing time in an iteration."""

USAGE = {
    "STANDS_FOR": "STANDS_FOR(name);",
    "MEANT_FOR": "MEANT_FOR(queue);",
    "PARAMETER": "PARAMETER(type, name, unit, chosen_by, value, least, most, meaning);",
    "CHOICE": "CHOICE(name, chosen_by, value, names, meaning);",
    "NIC_CHOICE": "NIC_CHOICE(name, value, names, meaning);",
    "RULE": "RULE(name, rule);",
    "HARDWARE": "HARDWARE(name, least, most, register);",
    "COUNTER": "COUNTER(type, name, unit, meaning);",
    "DERIVED": "DERIVED(name, formula, meaning);",
}
_MEASURED = ("us", "bytes/s", "2^-24")  # what is counted in any other unit is whole
_HIGHEST = {"__u32": 2**32 - 1, "__u64": 9e18}
# The printed unit, in units of the stored value, for values that have a different printed unit.
_IN_KERNEL = {"bytes/s": 125_000, "2^-24": 1 << 24}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_NOT_CODE = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE
)
_WORD = re.compile(rf"\b({'|'.join(USAGE)})\b")
_TOKEN = re.compile(r'\s*(?:(?P<text>"[^"\\\n]*")|(?P<plain>[-+.\w]+)|(?P<mark>[(),;]))')


@dataclass(frozen=True)
class Parameter:
    """A parameter of a transport. `value` is its default, in the unit that users see.

    If the values have `names`, a value is an index into `names`. `home` is the folder of the declaring file.
    """

    name: str
    unit: str  # unit of the value in the program
    chosen_by: ChosenBy  # source of the value if the user gives none
    value: float
    least: float
    most: float
    meaning: str
    home: Path = field(compare=False)
    names: tuple[str, ...] = ()

    @property
    def default(self) -> float | str:
        """Return the default value, or its name if values have names."""
        if self.names:
            return self.names[int(self.value)]
        return int(self.value) if self.is_whole else float(self.value)

    @property
    def is_whole(self) -> bool:
        """Return True if the parameter is a whole number."""
        return self.unit not in _MEASURED

    def host_value(self, value: float) -> int | float:
        """Return `value` rounded to the nearest multiple of the program's own unit.

        Raises ValueError, whose text states what is allowed, if the result is out of range, or if it is 0 although
        `value` is not.
        """
        per_unit = _IN_KERNEL.get(self.unit, 1)
        count = round(float(value) * per_unit) if math.isfinite(value) else 0
        found = count if per_unit == 1 else count / per_unit
        if (value and not count) or not self.least <= found <= self.most:
            kind = "a whole number" if per_unit == 1 else "a number"
            raise ValueError(f"{kind} from {max(self.least, 1 / per_unit):g} to {self.most:g} ({self.meaning})")
        return found


@dataclass(frozen=True)
class Counter:
    """A counter of a transport on a host. `kept_name` is its name in the sampler's records."""

    name: str
    kept_name: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Derived:
    """A figure computed from counters and parameters by a formula with * and /."""

    name: str
    formula: str
    meaning: str


@dataclass(frozen=True)
class Rule:
    """The rule `left <= right`, or with `either` the rule that not both are 0. Sides are parameters or FACTS."""

    left: str
    either: bool
    right: str


@dataclass(frozen=True)
class HardwareRange:
    """The values that a register of NICs takes for a parameter. Other values are for models and labs alone."""

    parameter: str
    least: float
    most: float
    register: str


@dataclass(frozen=True)
class Declaration:
    """All declarations of one transport. `meant_for` is the kind of queue at switch ports that it needs.

    `program` is its main file: NAME.bpf.c, or NAME.model.h.
    """

    name: str
    program: Path
    stands_for: str
    meant_for: QueueName
    parameters: tuple[Parameter, ...]
    counters: tuple[Counter, ...]
    derived: tuple[Derived, ...]
    rules: tuple[Rule, ...] = ()
    hardware: tuple[HardwareRange, ...] = ()

    @property
    def is_model(self) -> bool:
        """Return True if models alone play the transport: no host has a program of it."""
        return self.program.name.endswith(MODEL)

    def origin(self, parameter: Parameter) -> str:
        """Return the name of the transport that declares `parameter`. For mltcp_dcqcn it may be dcqcn or mltcp."""
        return self.name if parameter.home == self.program.parent else parameter.home.name

    @property
    def varied(self) -> tuple[str, ...]:
        """Return the other transports whose parameters this one includes, such as dcqcn and mltcp for mltcp_dcqcn."""
        return tuple(dict.fromkeys(each for each in map(self.origin, self.parameters) if each != self.name))


class _Statement(NamedTuple):
    word: str
    arguments: tuple[str, ...]  # texts keep their quotation marks
    file: str
    line: int

    @property
    def home(self) -> Path:
        return Path(self.file).parent

    def refuse(self, found: str, expected: str) -> NoReturn:
        raise SpecError(self.file, found, expected, line=self.line)


def source_files(program: Path) -> tuple[Path, ...]:
    """Return a program and the headers that it includes with quotes, in the order of inclusion.

    Raises SpecError if a file cannot be read.
    """
    included: dict[Path, None] = {}
    for name in _INCLUDE.findall(_text(program)):
        header = Path(os.path.normpath(program.parent / name))
        if header.exists() and header != program:  # else it is one of the words' own
            included |= dict.fromkeys(source_files(header))
    return (*included, program)


def read_declaration(program: Path) -> Declaration:
    """Read the declarations in a transport's program NAME.bpf.c or header NAME.model.h, and in its included headers.

    Raises SpecError if a declaration does not follow the grammar of declare.h.
    """
    name = program.name.removesuffix(PROGRAM).removesuffix(MODEL)
    statements = [each for source in source_files(program) for each in _statements(_text(source), str(source))]
    stands_for, meant_for = _once("STANDS_FOR", statements), _once("MEANT_FOR", statements)
    readers = {"PARAMETER": _parameter, "CHOICE": _choice, "NIC_CHOICE": _choice}
    parameters = {each: readers[each.word](each) for each in statements if each.word in readers}
    counters = {each: _counter(each) for each in statements if each.word == "COUNTER"}
    derived = {each: _derived(each) for each in statements if each.word == "DERIVED"}
    _check_names(parameters)
    _check_names({**counters, **derived})
    known = {each.name for each in parameters.values()}
    _check_formulas(derived, known | {each.name for each in counters.values()})
    rules = tuple(_rule(each, known) for each in statements if each.word == "RULE")
    return Declaration(
        name=name,
        program=program,
        stands_for=_name(stands_for, stands_for.arguments[0]) if stands_for else "TCP",
        meant_for=_queue(meant_for) if meant_for else "drop-tail",
        parameters=tuple(parameters.values()),
        counters=tuple(counters.values()),
        derived=tuple(derived.values()),
        rules=rules,
        hardware=tuple(_hardware(each, known) for each in statements if each.word == "HARDWARE"),
    )


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # a compiler would wait for a pipe's writer
            found = "a folder" if path.is_dir() else "a pipe or a device"
            raise SpecError(str(path), found, "the source of a transport")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError(str(path), "text that is not UTF-8", "the source of a transport") from None
    except OSError as error:
        raise SpecError(str(path), (error.strerror or str(error)).lower(), "the source of a transport") from None


def _statements(text: str, file: str) -> Iterator[_Statement]:
    """Yield every declaration in C source, without comments and preprocessor lines."""
    code = _NOT_CODE.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text)
    strings = [found.span() for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"', code)]
    for found in _WORD.finditer(code):
        if not any(start < found.start() < end for start, end in strings):
            yield _statement(found[1], code, found.end(), file)


def _statement(word: str, code: str, at: int, file: str) -> _Statement:
    line = code.count("\n", 0, at) + 1
    tokens: list[str] = []
    last = ""
    while last != ";":
        found = _TOKEN.match(code, at)
        if not found:
            raise SpecError(file, f"{word} with something else than names, numbers and text", USAGE[word], line=line)
        last, at = found[0].strip(), found.end()
        # Neighbouring texts are one, as in C.
        if last[0] == '"' and tokens and tokens[-1][0] == '"':
            tokens[-1] = tokens[-1][:-1] + last[1:]
        else:
            tokens.append(last)
    arguments = tuple(tokens[1:-2:2])
    expected = USAGE[word].count(",") + 1
    statement = _Statement(word, arguments, file, line)
    commas = [",", *tokens[2:-2:2]][: len(arguments)]
    if [*tokens[:1], *tokens[-2:]] != ["(", ")", ";"] or set(commas) != {","} or len(tokens) != 2 * len(arguments) + 2:
        statement.refuse(f"{word}{' '.join(tokens)}", USAGE[word])
    if len(arguments) != expected:
        statement.refuse(f"{word} with {len(arguments)} arguments", f"{expected}: {USAGE[word]}")
    return statement


def _once(word: str, statements: Sequence[_Statement]) -> _Statement | None:
    found = [each for each in statements if each.word == word]
    if len(found) > 1:
        found[1].refuse(f"{word} a second time", "it once")
    return found[0] if found else None


def _queue(at: _Statement) -> QueueName:
    word = at.arguments[0]
    named = {name.replace("-", "_"): name for name in QUEUES}
    if word not in named:
        at.refuse(f"the queue {word}", f"one of {', '.join(named)}")
    return named[word]


def _chosen_by(at: _Statement, word: str) -> ChosenBy:
    if word not in (allowed := [each for each in get_args(ChosenBy) if each != "nic"]):
        at.refuse(f"'{word}'", f"who chooses it: {', '.join(allowed)}")
    return cast("ChosenBy", word)


def _as_choice(at: _Statement) -> tuple[str, ...]:
    name, value, written, meaning = at.arguments
    return name, "nic", value, written, meaning


def _choice(at: _Statement) -> Parameter:
    name, chosen_by, value, written, meaning = at.arguments if at.word == "CHOICE" else _as_choice(at)
    if not re.fullmatch(r'"[a-z][a-z0-9_]*( [a-z][a-z0-9_]*)+"', written) or len(written) > 129:
        at.refuse(f"the names {written}", 'names of C, in small letters: "first second"')
    names = tuple(written[1:-1].split())
    if value not in names:
        at.refuse(f"the value {value}", f"one of {', '.join(names)}")
    by: ChosenBy = "nic" if at.word == "NIC_CHOICE" else _chosen_by(at, chosen_by)
    most = float(len(names) - 1)
    return Parameter(
        _name(at, name), "", by, float(names.index(value)), 0.0, most, _meaning(at, meaning), at.home, names
    )


def _rule(at: _Statement, known: Set[str]) -> Rule:
    found = re.fullmatch(r'"(\w+) (<=|or) (\w+)"', at.arguments[1])
    if not found:
        at.refuse(f"the rule {at.arguments[1]}", '"this <= that", or "this or that": not both are 0')
    for name in found.group(1, 3):
        if name not in known and name not in FACTS:
            at.refuse(f"{name} in a rule", f"one of {', '.join([*sorted(known), *FACTS])}")
    return Rule(found[1], found[2] == "or", found[3])


def _hardware(at: _Statement, known: Set[str]) -> HardwareRange:
    name, least, most, register = at.arguments
    if name not in known:
        at.refuse(f"the hardware's range of {name}", f"one of {', '.join(sorted(known))}")
    return HardwareRange(name, _number(at, least), _number(at, most), _meaning(at, register))


def _parameter(at: _Statement) -> Parameter:
    kind, kept_name, unit, by, *numbers, meaning = at.arguments
    value, least, most = (_number(at, each) for each in numbers)
    chosen_by = _chosen_by(at, by)
    if not least <= value <= most:
        at.refuse(f"the value {value:g} with the range {least:g} to {most:g}", "a value within it")
    if chosen_by == "network" and unit != '"us"':
        at.refuse(f"network with the unit {unit}", 'a delay, kept in "us"')
    if chosen_by == "line_rate" and unit != '"bytes/s"':
        at.refuse(f"line_rate with the unit {unit}", 'a rate, kept in "bytes/s"')
    highest = _HIGHEST[_type(at, kind)] / _IN_KERNEL.get(_unit(at, unit), 1)
    if least < 0 or most > highest:
        at.refuse(f"the range {least:g} to {most:g}", f"one within 0 to {highest:g}, which is what {kind} holds")
    name = _public_name(_name(at, kept_name), _unit(at, unit))
    return Parameter(name, _unit(at, unit), chosen_by, value, least, most, _meaning(at, meaning), at.home)


def _counter(at: _Statement) -> Counter:
    kind, kept_name, unit, meaning = at.arguments
    _type(at, kind)
    name = _public_name(_name(at, kept_name), _unit(at, unit))
    return Counter(name, kept_name, _unit(at, unit), _meaning(at, meaning))


def _derived(at: _Statement) -> Derived:
    name, formula, meaning = at.arguments
    if not re.fullmatch(r'"\w+( [*/] \w+)*"', formula):
        at.refuse(f"the formula {formula}", 'counters and parameters joined by * and /: "acks * T_us / active_us"')
    return Derived(_name(at, name), formula[1:-1], _meaning(at, meaning))


def _public_name(kept_name: str, unit: str) -> str:
    """Return the public name of a stored one, by the rule of transports/common/declarations.c."""
    if unit == "bytes/s":
        return f"{kept_name}_mbps"
    return kept_name.removesuffix("_q24") if unit == "2^-24" else kept_name


def _name(at: _Statement, word: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w{0,57}", word):
        at.refuse(f"the name {word}", "a name of C with at most 58 letters")
    return word


def _type(at: _Statement, word: str) -> str:
    if word not in _HIGHEST:
        at.refuse(f"the type {word}", " or ".join(_HIGHEST))
    return word


def _number(at: _Statement, word: str) -> float:
    try:
        number = float(word) if re.match(r"[-+.\d]", word) and "_" not in word else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        at.refuse(f"{word}", "a plain number")
    return number


def _unit(at: _Statement, text: str) -> str:
    if not re.fullmatch(r'"[^";\\]{1,23}"', text):
        at.refuse(f"the unit {text}", "a text of at most 23 letters, without ';'")
    return text[1:-1]


def _meaning(at: _Statement, text: str) -> str:
    if not re.fullmatch(r'"[^"\\]+"', text):
        at.refuse(f"the meaning {text}", "a text")
    return text[1:-1]


def _check_names(members: Mapping[_Statement, Parameter | Counter | Derived]) -> None:
    known: set[str] = set()
    for at, member in members.items():
        if member.name in known:
            at.refuse(f"{member.name} a second time", "each name once")
        known.add(member.name)


def _check_formulas(derived: Mapping[_Statement, Derived], known: set[str]) -> None:
    for at, each in derived.items():
        for name in re.findall(r"\w+", each.formula):
            if name not in known:
                at.refuse(f"{name} in the formula of {each.name}", f"one of {', '.join(sorted(known))}")
