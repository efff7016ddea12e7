"""The standard library's ast."""

import ast

from survey.drivers.support import fails

_SOURCE = (
    "class A:\n    def f(self, x: int = 3) -> str:\n        return f'{x!r:>5}' + str([1, *x])\n"
)


class _Names(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.found.append(node.id)


class _Renames(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(id="y", ctx=node.ctx), node)


class _Refuses(ast.NodeVisitor):
    def visit_Name(self, node: ast.Name) -> None:
        raise ValueError(node.id)


def parse() -> None:
    ast.parse(_SOURCE)


def dump() -> None:
    ast.dump(ast.parse(_SOURCE))


def dump_with_indent() -> None:
    ast.dump(ast.parse(_SOURCE), indent=2, include_attributes=True)


def walk() -> None:
    for _ in ast.walk(ast.parse(_SOURCE)):
        pass


def visit() -> None:
    _Names().visit(ast.parse(_SOURCE))


def transform() -> None:
    ast.fix_missing_locations(_Renames().visit(ast.parse(_SOURCE)))


def increment_lineno() -> None:
    ast.increment_lineno(ast.parse(_SOURCE), 3)


def unparse() -> None:
    ast.unparse(ast.parse(_SOURCE))


def literal_eval() -> None:
    ast.literal_eval("{'a': [1, 2.5, (None, True)], 'b': {3, -4}}")


def source_segment() -> None:
    ast.get_source_segment(_SOURCE, ast.parse(_SOURCE).body[0])


def compiled() -> None:
    compile(ast.parse(_SOURCE), "<survey>", "exec")


def parse_what_is_no_python() -> None:
    fails(SyntaxError, lambda: ast.parse("def f(:"))


def literal_eval_of_a_call() -> None:
    fails(ValueError, lambda: ast.literal_eval("[1, f(2)]"))


def literal_eval_of_an_unhashable_key() -> None:
    fails(TypeError, lambda: ast.literal_eval("{[]: 1}"))


def visitor_that_raises() -> None:
    fails(ValueError, lambda: _Refuses().visit(ast.parse(_SOURCE)))


def dump_of_what_is_no_node() -> None:
    fails(TypeError, lambda: ast.dump("text"))  # type: ignore[arg-type]


def unparse_a_half_built_node() -> None:
    node = ast.UnaryOp(op=ast.Not(), operand=ast.Constant(1))
    del node.operand
    fails(AttributeError, lambda: ast.unparse(node))


def compile_a_half_built_node() -> None:
    fails(TypeError, lambda: compile(ast.Module(body=[ast.Pass()]), "<survey>", "exec"))  # type: ignore[call-arg]


ORDINARY = [
    parse,
    dump,
    dump_with_indent,
    walk,
    visit,
    transform,
    increment_lineno,
    unparse,
    literal_eval,
    source_segment,
    compiled,
]
ERRORS = [
    parse_what_is_no_python,
    literal_eval_of_a_call,
    literal_eval_of_an_unhashable_key,
    visitor_that_raises,
    dump_of_what_is_no_node,
    unparse_a_half_built_node,
    compile_a_half_built_node,
]
