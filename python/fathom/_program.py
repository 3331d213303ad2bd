"""The two doors to the same C code: the library for questions that need nothing but their words, the program for those
that read files or the hub."""
import ctypes
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = open(os.path.join(HERE, "VERSION"), encoding="utf-8").read().strip()
MEMORY = 256 << 20  # FATHOM_MEMORY of fathom.h: enough for every command


class FathomError(Exception):
    """The program's sentence. `code`, `where` and `hint` are its parts; `status` is the exit status."""

    def __init__(self, error, status):
        self.code = error.get("code")
        self.message = error.get("message", "")
        self.where = error.get("where")
        self.hint = error.get("hint")
        self.status = status
        words = [f"{self.where}: " if self.where else "", self.message, f"; {self.hint}" if self.hint else ""]
        super().__init__("".join(words))


class _Reply(ctypes.Structure):
    _fields_ = [("json", ctypes.c_void_p), ("json_bytes", ctypes.c_size_t)]


def program():
    """The program's path."""
    return os.path.join(HERE, "bin", "fathom")


def _library():
    library = ctypes.CDLL(os.path.join(HERE, "bin", "libfathom.so"))
    library.fathom_ask.restype = ctypes.c_int
    library.fathom_ask.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
                                   ctypes.POINTER(_Reply)]
    return library


_LIBRARY = _library()


def written(value):
    """A setting's value as the command line has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ",".join(written(item) for item in value)
    return str(value)


def as_settings(words):
    """Keywords as settings: the name with hyphens, what is None left out."""
    return {name.strip("_").replace("_", "-"): written(value) for name, value in words.items() if value is not None}


def _checked(reply, status):
    if "error" in reply:
        raise FathomError(reply["error"], status)
    return reply


def ask_library(command, settings):
    """The reply to a question that needs no files: each call has a memory of its own, so threads do not meet."""
    for name, value in settings.items():
        if any(mark in text for text in (name, value) for mark in "\n\0"):
            raise FathomError({"code": "bad_input", "message": "a value has one line", "where": f"--{name}"}, 2)
    question = "".join(f"{name}={value}\n" for name, value in {"command": command, **settings}.items()).encode()
    memory = ctypes.create_string_buffer(1)
    ctypes.resize(memory, MEMORY)
    reply = _Reply()
    status = _LIBRARY.fathom_ask(memory, MEMORY, question, len(question), ctypes.byref(reply))
    return _checked(json.loads(ctypes.string_at(reply.json, reply.json_bytes)), status)


def ask_program(command, settings, *words, text=None):
    """The reply of a process: it may read files, this machine's GPUs and the hub."""
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    done = subprocess.run([program(), command, *words, *options, "--json"], input=text, capture_output=True, text=True,
                          encoding="utf-8", errors="replace", check=False)
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        raise FathomError({"code": "bug", "message": done.stderr.strip() or "no answer"}, done.returncode) from None
    return _checked(reply, done.returncode)


def tell(command, *words, text=None):
    """What the program says to a person."""
    return subprocess.run([program(), command, *words], input=text, capture_output=True, text=True, encoding="utf-8",
                          errors="replace", check=False).stdout
