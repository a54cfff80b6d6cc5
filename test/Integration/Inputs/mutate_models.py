"""mutate_models.py FOLDER FIRST COUNT: damages models and compiles them. Every tool must end with exit code 0, 1 or 2.

Mutant N depends on N alone: `mutate_models.py FOLDER N 1` makes it again. Each N gives a text and a bytecode file, made
from one of the models below by one to four changes:

  text      a token replaced by another one of its kind in the file, by any other one, or by a number, a type or a
            bracket; lines removed, doubled or swapped; characters changed; the end cut off
  bytecode  bytes changed, bits flipped, ranges removed, doubled or overwritten by zeros; the end cut off

fsdp-compile plans each mutant (parsing, verification and all stages but code generation), and fsdp-opt reads and
prints it. A signal, another exit code, or more than 60 seconds is a failure; the mutant stays in FOLDER.
"""
import concurrent.futures
import os
import random
import re
import subprocess
import sys

folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SMALL = ["--layers=1", "--hidden=8", "--heads=2", "--vocab=11", "--seq=4", "--batch=2"]
TOKEN = re.compile(r'[%#@^!]?[A-Za-z_][\w.$-]*|%?\d+(?:\.\d+)?|"[^"\n]*"|->|[^\s\w]')
EXTRA = ["0", "-1", "1", "2", "9223372036854775807", "18446744073709551616", "0x7FC00000", "1.0e400", "f32", "f64", "i1", "i64", "index",
         "bf16", "tensor<?xf32>", "tensor<0x4xf32>", "tensor<*xf32>", "none", "()", "[]", "{}", "<>", "(", ")", "[", "]", "{", "}", "<",
         ">", "dense<1.0>", "affine_map<() -> ()>", "affine_map<(i) -> (i mod 0)>", "true", "unit", "#fsdp.init<normal, 0.0, 1.0>",
         "dense_resource<none>", "loc(unknown)", "\"linalg.generic\"", "\"\"", "%0", "^bb0"]


def run(*command):
    return subprocess.run(command, capture_output=True, timeout=60)


def make_sources():
    """Returns pairs of text and bytecode."""
    sources = []
    here = os.path.dirname(os.path.abspath(__file__))
    made = []
    for family in "gpt2", "llama":
        path = f"{folder}/{family}.mlir"
        run("fsdp-modelgen", family, *SMALL, "-o", path)
        made.append(path)
    made += [f"{here}/odd-parameters.mlir", f"{here}/integer-parameters.mlir", f"{here}/attention.mlir"]
    for i, path in enumerate(made):
        generic = run("fsdp-opt", path, "--mlir-print-op-generic").stdout.decode()
        run("fsdp-opt", path, "--emit-bytecode", "-o", f"{folder}/{i}.bc")
        with open(path) as text, open(f"{folder}/{i}.bc", "rb") as code:
            data = code.read()
            sources += [(text.read(), data), (generic, data)]
    return sources


def kind_of(token):
    """Returns the kind of a token: "0" for numbers, "a" for words, the prefix of a name, or the token itself."""
    return "0" if token[0].isdigit() else token[0] if token[0] in "%#@^!\"" else "a" if token[0].isalpha() else token


def choose_token(old, tokens, random):
    """Returns a token that replaces `old`, mostly one of the same kind."""
    alike = [token.group() for token in tokens if kind_of(token.group()) == kind_of(old)]
    way = random.random()
    return random.choice(alike) if way < 0.6 else random.choice(tokens).group() if way < 0.7 else random.choice(EXTRA)


def how_often(random):
    return 1 if random.random() < 0.7 else random.randint(2, 4)


def mutate_text(text, random):
    for _ in range(how_often(random)):
        lines = text.split("\n")
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        kind = random.randrange(16)
        if kind == 0:
            del lines[at]
            text = "\n".join(lines)
        elif kind == 1:
            lines.insert(other, lines[at])
            text = "\n".join(lines)
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
            text = "\n".join(lines)
        elif kind == 3:
            text = text[:random.randrange(len(text) + 1)]
        elif kind == 4 and text:
            place = random.randrange(len(text))
            text = text[:place] + chr(random.randrange(1, 127)) + text[place + 1:]
        else:
            tokens = list(TOKEN.finditer(text))
            if not tokens:
                return text
            token = random.choice(tokens)
            text = text[:token.start()] + choose_token(token.group(), tokens, random) + text[token.end():]
    return text


def mutate_bytes(data, random):
    data = bytearray(data)
    for _ in range(how_often(random)):
        if not data:
            break
        at, size = random.randrange(len(data)), random.randint(1, 16)
        kind = random.randrange(16)
        if kind == 0:
            del data[at:at + size]
        elif kind == 1:
            data[at:at] = data[at:at + size]
        elif kind == 2:
            data[at:at + size] = bytes(size)
        elif kind == 3 and random.random() < 0.3:
            del data[at:]
        elif kind < 9:
            data[at] ^= 1 << random.randrange(8)
        else:
            data[at] = random.randrange(256)
    return bytes(data)


def check(path):
    failures = []
    for command in (["fsdp-compile", path, "--mesh=shard=2", "--compile-to=plan", "-o", path + ".plan"],
                    ["fsdp-opt", path, "--allow-unregistered-dialect", "-o", path + ".out"]):
        try:
            code = run(*command).returncode
        except subprocess.TimeoutExpired:
            code = "time limit"
        codes[code] = codes.get(code, 0) + 1
        if code not in (0, 1, 2):
            failures.append(f"{command[0]} {os.path.basename(path)}: exit {code}")
    for end in "", ".plan", ".out":
        if os.path.exists(path + end) and (end or not failures):
            os.remove(path + end)
    return failures


codes = {}
os.makedirs(folder, exist_ok=True)
sources = make_sources()
paths = []
for n in range(first, first + count):
    generator = random.Random(n)
    text, data = generator.choice(sources)
    for name, content in (f"{n}.mlir", mutate_text(text, generator).encode()), (f"{n}.mlirbc", mutate_bytes(data, generator)):
        paths.append(f"{folder}/mutant-{name}")
        with open(paths[-1], "wb") as file:
            file.write(content)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    failures = sum(pool.map(check, paths), [])
if failures:
    print("\n".join(failures))
print("exit codes:", ", ".join(f"{code}: {codes[code]}" for code in sorted(codes, key=str)))
print(f"{len(paths)} mutants, {len(failures)} failures")
sys.exit(1 if failures else 0)
