"""python -m kiln.torch SCRIPT [ARGUMENTS]: runs a PyTorch script on Kiln.

`-m MODULE` and `-c CODE` work as for Python. In modules of the program, `import torch` gives
kiln.torch. Installed libraries get PyTorch itself, if it is installed.
"""

import builtins
import importlib
import os
import runpy
import signal
import site
import sys
import sysconfig
import types
from typing import Any, Dict, Sequence, Tuple

_USAGE = "usage: python -m kiln.torch [-m MODULE | -c CODE | SCRIPT] [ARGUMENTS]"
_OWN = "kiln.torch"
_import = builtins.__import__
_import_module = importlib.import_module


def _installed_folders() -> Tuple[str, ...]:
    """Returns the folders of the standard library and of installed packages."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths.update(site.getsitepackages())
    paths.add(site.getusersitepackages())
    return tuple(os.path.realpath(path) + os.sep for path in paths if path)


_FOLDERS = _installed_folders()
_KILN = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir)) + os.sep
_of_program: Dict[str, bool] = {}  # by file


def _is_program(variables: Any) -> bool:
    """Returns whether code with these global variables belongs to the program."""
    file = (variables or {}).get("__file__")
    if file is None:
        # -c, exec() and doctests of the program; modules without a file are Python's own.
        return (variables or {}).get("__name__") == "__main__"
    found = _of_program.get(file)
    if found is None:
        path = os.path.realpath(file)
        found = _of_program[file] = not path.startswith((*_FOLDERS, _KILN)) and not (
            {"site-packages", "dist-packages"} & {*path.split(os.sep)})
    return bool(found)


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _importing(name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (),
               level: int = 0) -> types.ModuleType:
    """As __import__, but the program's `torch` is kiln.torch."""
    if level or not _is_torch(name) or not _is_program(globals):
        return _import(name, globals, locals, fromlist, level)
    own = _OWN + name[len("torch"):]
    if not fromlist:
        _import_module(own)
        return sys.modules[_OWN]
    return _import(own, globals, locals, fromlist, 0)


def _importing_module(name: str, package: Any = None) -> types.ModuleType:
    """As importlib.import_module, but the program's `torch` is kiln.torch."""
    caller = sys._getframe(1).f_globals
    return _import_module(_OWN + name[len("torch"):] if _is_torch(name) and _is_program(
        caller) else name, package)


def _without_own_frames(traceback: Any) -> Any:
    """Returns a traceback from the first line of the program on."""
    own = (os.path.realpath(__file__), os.path.realpath(runpy.__file__))
    first = traceback
    while first is not None and (
            os.path.realpath(first.tb_frame.f_code.co_filename) in own
            or first.tb_frame.f_code.co_filename.startswith("<frozen ")):
        first = first.tb_next
    return first if first is not None else traceback


def _run_file(path: str) -> None:
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path[0] = path
        runpy.run_path(path, run_name="__main__")
        return
    with open(path, "rb") as file:
        source = file.read()
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)


def _run(arguments: Sequence[str]) -> None:
    kind = arguments[0]
    if kind in ("-m", "-c"):
        sys.path[0] = os.getcwd() if kind == "-m" else ""
        if kind == "-m":
            sys.argv = list(arguments[1:])
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
            return
        sys.argv = ["-c", *arguments[2:]]
        main = types.ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = main
        exec(compile(arguments[1], "<string>", "exec", dont_inherit=True), main.__dict__)
        return
    sys.argv = list(arguments)
    _run_file(kind)


def main(arguments: Sequence[str]) -> int:
    """Runs a program; returns the exit status."""
    if not arguments or (arguments[0] in ("-m", "-c") and len(arguments) < 2):
        print(_USAGE, file=sys.stderr)
        return 2
    if arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if not arguments[0].startswith("-") and not os.path.exists(arguments[0]):
        print(f"{sys.executable}: can't open file {os.path.abspath(arguments[0])!r}: [Errno 2] No "
              "such file or directory", file=sys.stderr)
        return 2
    setattr(builtins, "__import__", _importing)  # noqa: B010
    setattr(importlib, "import_module", _importing_module)  # noqa: B010
    try:
        _run(arguments)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = _without_own_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
