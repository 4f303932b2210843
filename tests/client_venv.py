"""Runs a test in a virtual environment that has the clients of client_requirements.txt, made on first use beside the
build. Without a network the test is skipped, in continuous integration it fails."""
import fcntl
import hashlib
import os
import subprocess
import sys

REQUIREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client_requirements.txt")
SKIPPED = 77


def enter():
    """Returns once the interpreter is the environment's."""
    root = os.environ["BRIAR_CLIENT_VENV"]
    if os.path.realpath(sys.prefix) == os.path.realpath(root):
        return
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with open(root + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(root) and not make(root):
            print("the clients could not be installed")
            sys.exit(1 if os.environ.get("CI") else SKIPPED)
    python = os.path.join(root, "bin", "python")
    os.execv(python, [python, *sys.argv])


def stamp():
    with open(REQUIREMENTS, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def is_current(root):
    try:
        with open(os.path.join(root, "stamp"), encoding="ascii") as file:
            return file.read() == stamp()
    except OSError:
        return False


def make(root):
    pip = [os.path.join(root, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", "--clear", root], [*pip, "-r", REQUIREMENTS]):
        if subprocess.run(command, check=False).returncode != 0:
            return False
    with open(os.path.join(root, "stamp"), "w", encoding="ascii") as file:
        file.write(stamp())
    return True
