"""Tokens → syntax, by recursive descent.

After a mistake the rest of that statement is passed over, up to its `;`, so that one run finds the
mistakes of all statements. Only what no token begins with ends the reading: what follows an
unclosed text or comment cannot be told from what is inside it.
"""

from __future__ import annotations

from skyfarer.base.binding import nearest
from skyfarer.base.units import MIB
from skyfarer.oap.oal.expressions import Expressions
from skyfarer.oap.oal.lexer import Kind, tokens
from skyfarer.oap.oal.problems import OalMistake, Place, Problem
from skyfarer.oap.oal.syntax import (
    Call,
    Comparison,
    Disable,
    Literal,
    Part,
    Path,
    Script,
    Statement,
)

TEXT_CHARS_MAX = 4 * MIB
NAME_CHARS_MAX = 200


def parse(text: str, file: str) -> tuple[Script, tuple[Problem, ...]]:
    """What could be read, and why the rest could not. `file` is only named in places."""
    if len(text) > TEXT_CHARS_MAX:
        sentence = f"the file is longer than {TEXT_CHARS_MAX} characters; split it"
        return Script((), ()), (Problem(Place(file, 1, 1), sentence),)
    found, unreadable = [], []
    try:
        for token in tokens(text, file):
            found.append(token)
    except OalMistake as mistake:
        unreadable.append(mistake.problem)
    if unreadable:
        return Script((), ()), tuple(unreadable)
    return _Parser(found).script()


class _Parser(Expressions):
    def script(self) -> tuple[Script, tuple[Problem, ...]]:
        statements: list[Statement] = []
        disables: list[Disable] = []
        problems: list[Problem] = []
        while self.now.kind is not Kind.END:
            try:
                if self.word("disable") and self.next_is("("):
                    disables.append(self._disable())
                else:
                    statements.append(self._statement())
            except OalMistake as mistake:
                problems.append(mistake.problem)
                self._pass_over()
        return Script(tuple(statements), tuple(disables)), tuple(problems)

    def _pass_over(self) -> None:
        while self.now.kind is not Kind.END and not self.at(";"):
            self.advance()
        self.advance()

    def _disable(self) -> Disable:
        self.advance()
        self.sign("(")
        name = self.name("the name of a stream")
        self.sign(")")
        self.sign(";")
        return Disable(name.text, name.place)

    def _statement(self) -> Statement:
        name = self.name("the name of a metric, or disable(...)")
        if len(name.text) > NAME_CHARS_MAX:
            raise OalMistake(name.place, f"a name has at most {NAME_CHARS_MAX} characters")
        self.sign("=")
        source, path = self._from()
        filters = []
        self.sign(".")
        while self.word("filter"):
            filters.append(self._filter())
            self.sign(".")
        call = self._call()
        decorator = self._decorator() if self.at(".") else None
        self.sign(";")
        return Statement(name.text, source, path, tuple(filters), call, decorator, name.place)

    def _from(self) -> tuple[Part, Path]:
        if not self.word("from"):
            raise OalMistake(self.now.place, f"'from(' is expected here, not {self.now}")
        self.advance()
        self.sign("(")
        place, cast = self.now.place, self.cast()
        source = self.name("a source, as in from(Service.latency)")
        self.sign(".")
        if self.at("*"):
            self.advance()
            path = Path((), cast, place)
        else:
            path = Path(self.parts(), cast, place)
        self.sign(")")
        return Part(source.text, None, source.place), path

    def _filter(self) -> Comparison:
        self.advance()
        self.sign("(")
        path = self.path()
        comparison = self.comparison(path)
        self.sign(")")
        return comparison

    def _call(self) -> Call:
        function = self.name("a function")
        self.sign("(")
        arguments = []
        while not self.at(")"):
            arguments.append(self.argument())
            if not self.at(")"):
                self.sign(",")
        self.sign(")")
        return Call(function.text, tuple(arguments), function.place)

    def _decorator(self) -> Literal:
        self.advance()
        word = self.name("decorator(...)")
        if word.text != "decorator":
            raise OalMistake(
                word.place,
                f"nothing but a decorator follows the function, not '{word.text}'"
                + nearest(word.text, ["decorator"]),
            )
        self.sign("(")
        place = self.now.place
        name = self.text("the decorator's name in quotes")
        self.sign(")")
        return Literal(name, place)
