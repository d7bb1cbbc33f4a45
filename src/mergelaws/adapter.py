"""An adapter's source without what it takes from this project: the bare call of the package, to be shown."""

from __future__ import annotations

import ast

from mergelaws.implementation import OPERATIONS


def adapted(source: str, *operations: str) -> list[str]:
    """An adapter's `operations` (default: all) in plain Python: their functions, what these use, and where that is from."""
    tree = ast.parse(source)
    wanted, kept = set(operations or OPERATIONS), list[ast.stmt]()
    for statement in reversed(tree.body):
        names = _defined(statement)
        loads = isinstance(statement, ast.Expr) and "torch.ops" in ast.unparse(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            if names & wanted and not names & {"torch", "alone", "require", "Implementation"}:
                kept.append(statement)
        elif names & wanted or loads:
            kept.append(_plain(statement))
            wanted |= {node.id for node in ast.walk(kept[-1]) if isinstance(node, ast.Name)}
    lines = []
    for statement in reversed(kept):
        lines += [""] * isinstance(statement, ast.FunctionDef) + ast.unparse(statement).splitlines()
    return lines


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module gives."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _plain(statement: ast.stmt) -> ast.stmt:
    """Without annotations and docstring; what `implementations.alone` loads is imported as its package has it."""
    if isinstance(statement, ast.FunctionDef):
        statement.returns = None
        for argument in statement.args.args:
            argument.annotation = None
        statement.body = [line for line in statement.body if not isinstance(line, ast.Assert)]
        if ast.get_docstring(statement) is not None:
            del statement.body[0]
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
        loaded = statement.value.value
        if isinstance(loaded, ast.Call) and isinstance(loaded.func, ast.Name) and loaded.func.id == "alone":
            module = ast.literal_eval(loaded.args[0])
            return ast.ImportFrom(module, [ast.alias(statement.value.attr)], 0)
    return statement
