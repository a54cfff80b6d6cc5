"""Runs fsdp-opt on lit tests, and makes from them the examples of passes in docs/reference/passes.md.

Comment lines in a lit test mark the IR that is the input of an example:

  // DOC-BEFORE-BEGIN fsdp-fold-copies
  func.func @f(...) ...
  // DOC-BEFORE-END

All blocks of a file that name the same pass form one example. The following lines may be placed between BEGIN and END, or next to these lines:

  // DOC-ARGS: --fsdp-x=tile=64     arguments of fsdp-opt; default: those of the file's first RUN line
                                    that names the pass, and else --PASS
  // DOC-SETUP: --fsdp-y            passes that run first; their output is the example's "before"
  // DOC-AFTER: TEXT                print only top-level ops whose text contains TEXT
  // DOC-LINES: N                   print at most N lines of the "after" (default 45)

The "before" of an example is the marked text without comments. The "after" is the output of fsdp-opt. In this output, aliases are replaced by their
attributes and maps, and long lines are broken. The "after" is followed by the diagnostics of fsdp-opt, without the source lines that they quote. In a
test whose name is NAME-example.mlir, the first line is the caption of the example. It is an error if a pass has no example.
"""
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

BEGIN = re.compile(r"^\s*// DOC-BEFORE-BEGIN (\S+)\s*$")
END = re.compile(r"^\s*// DOC-BEFORE-END\s*$")
SETTING = re.compile(r"^\s*// DOC-(ARGS|SETUP|AFTER|LINES): (.*?)\s*$")
RUN = re.compile(r"^\s*(?://|#)?\s*RUN:\s*(.*?)\s*$")
DIAGNOSTIC = re.compile(r"^[^\s:]*:(\d+):(\d+): (error|warning|remark|note): (.*)$")
WIDTH = 100
BREAKS = [re.compile(pattern) for pattern in (
    r" (?=ins\(|outs\(|iterator_types|affine_map|attributes \{|%\w+: |#fsdp|placement)",
    r" (?=->|: |tensor<|\{fsdp)", r" (?<=, )")]
CONTINUED = re.compile(r"\s+(?:ins\(|outs\(|iterator_types|affine_map|attributes|->|: |#fsdp)")  # continues a line
COMMON = ["--mlir-print-local-scope", "--mlir-print-op-on-diagnostic=false", "--mlir-elide-elementsattrs-if-larger=8",
          "--allow-unregistered-dialect"]


class Example:
    def __init__(self, path):
        self.path, self.lines, self.settings = path, [], {}


def read_examples(root):
    """Returns a dict {pass: Example} of the examples in all marked tests. Exits with an error if two files have examples of one pass."""
    found = {}
    for path in sorted((root / "test").rglob("*.mlir")):
        text = path.read_text()
        if "DOC-BEFORE-BEGIN" not in text:
            continue
        current = None
        last = None
        for line in text.splitlines():
            if begin := BEGIN.match(line):
                name = begin[1]
                if found.setdefault(name, Example(path)).path != path:
                    sys.exit(f"scripts/docs: {name} has examples in {found[name].path} and {path}")
                current = last = found[name]
            elif END.match(line):
                current = None
            elif setting := SETTING.match(line):
                if last is None:
                    sys.exit(f"scripts/docs: {path}: expected DOC-BEFORE-BEGIN before '{line.strip()}'")
                last.settings[setting[1]] = setting[2]
            elif current is not None and not re.match(r"\s*//", line):
                current.lines.append(line.rstrip())
        if current is not None:
            sys.exit(f"scripts/docs: {path}: expected DOC-BEFORE-END")
    return found


def get_arguments(example, name):
    """Returns the arguments of fsdp-opt. They are taken from DOC-ARGS or, without DOC-ARGS, from the first RUN line that names the pass. Without
    both, they are --PASS."""
    if "ARGS" in example.settings:
        return shlex.split(example.settings["ARGS"])
    for line in example.path.read_text().splitlines():
        run = RUN.match(line)
        if run and re.search(rf"fsdp-opt\b.*\b{name}\b", run[1]):
            command = re.split(r"\||>|2>", run[1][run[1].index("fsdp-opt"):])[0]
            words = [word for word in shlex.split(command)[1:]
                     if name in word or word.startswith("--") and not re.match(
                         r"--?(split-input-file|verify|allow-unregistered|mlir-|o$)", word)]
            return [word for word in words if word.startswith("-")]
    return [f"--{name}"]


def get_caption(example):
    """Returns the caption of the example, which is the first comment of a test NAME-example.mlir. Returns an empty text for other tests."""
    if not example.path.name.endswith("-example.mlir"):
        return ""
    return example.path.read_text().splitlines()[0].removeprefix("// ") + "\n"


def run(tool, arguments, text):
    done = subprocess.run([tool, *COMMON, *arguments, "-"], input=text, capture_output=True, text=True)
    diagnostics = [found for found in map(DIAGNOSTIC.match, done.stderr.splitlines()) if found]
    if done.returncode and not diagnostics:
        sys.exit(f"scripts/docs: fsdp-opt {' '.join(arguments)} failed\n{done.stderr}\n{text}")
    if not diagnostics:
        return done.stdout, done.stderr.rstrip("\n").splitlines()
    return done.stdout, [f"line {d[1]}: {d[3]}: {d[4]}" if d[1] != "0" else f"{d[3]}: {d[4]}" for d in diagnostics]


def strip_module(text):
    """Returns IR without the lines `module {` and `}`, unless the module has attributes."""
    lines = text.strip("\n").splitlines()
    if lines and lines[0] == "module {" and lines[-1] == "}":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    return lines


def keep_ops(lines, text):
    """Removes a top-level op from the IR if no line of the op contains `text`."""
    ops, kept = [], []
    for line in lines:
        if not ops or not line.startswith((" ", "}")):
            ops.append([])
        ops[-1].append(line)
    for op in ops:
        if any(text in line for line in op):
            kept += op
    return kept


def break_line(line):
    """Breaks a line of IR that has more than 100 characters. The breaks are placed before operands, maps, arguments or types."""
    indent = len(line) - len(line.lstrip()) + (0 if CONTINUED.match(line) else 4)
    broken = []
    while len(line) > WIDTH:
        found = ([place.start() for place in pattern.finditer(line) if indent < place.start() <= WIDTH]
                 for pattern in BREAKS)
        places = next(filter(None, found), None)
        if not places:
            break
        broken.append(line[:places[-1]])
        line = " " * indent + line[places[-1]:].lstrip()
    return broken + [line]


def break_lines(lines):
    return [part for line in lines for part in break_line(line)]


def shorten(lines, limit):
    if len(lines) <= limit:
        return lines
    return lines[:limit] + [f"// ... and {len(lines) - limit} more lines"]


def format_example(root, tool, name, example):
    before = break_lines(example.lines)
    if "SETUP" in example.settings:
        text, _ = run(tool, shlex.split(example.settings["SETUP"]), "\n".join(before) + "\n")
        before = break_lines(strip_module(text))
    arguments = get_arguments(example, name)
    output, diagnostics = run(tool, arguments, "\n".join(before) + "\n")
    after = strip_module(output)
    same = after == strip_module(run(tool, [], "\n".join(before) + "\n")[0]) if after else False
    shown = before
    if "AFTER" in example.settings:
        after = keep_ops(after, example.settings["AFTER"])
        shown = keep_ops(before, example.settings["AFTER"]) if "SETUP" in example.settings else before
    after = break_lines(after)
    limit = int(example.settings.get("LINES", 45))
    command = " ".join(shlex.quote(word) for word in ["fsdp-opt", *arguments])
    setup = f" (the output of `fsdp-opt {example.settings['SETUP']}`)" if "SETUP" in example.settings else ""
    source = f"[{example.path.name}](../../{example.path.relative_to(root)})"
    parts = [f"#### Example\n\n{get_caption(example)}From {source}:\n",
             f"```sh\n{command}\n```\n", f"Before{setup}:\n", "```mlir", *shorten(shown, 60), "```\n"]
    if after and not same:
        parts += ["After:\n", "```mlir", *shorten(after, limit), "```\n"]
    if diagnostics:
        parts += ["It prints:\n", "```", *diagnostics[:24], "```\n"]
    elif same or not after:
        sys.exit(f"scripts/docs: the example of {name} in {example.path} changes nothing and prints nothing")
    return "\n".join(parts)


def add_examples(root, page):
    """Inserts an example after the description of each pass on a page. Exits with an error if an example is missing."""
    tool = root / "build/bin/fsdp-opt"
    examples = read_examples(root)
    names = re.findall(r"^### `-(\S+)`$", page, re.M)
    missing = [name for name in names if name not in examples]
    unknown = [name for name in examples if name not in names]
    if missing or unknown:
        sys.exit("\n".join([f"scripts/docs: expected a DOC-BEFORE-BEGIN block for {name} in a test, found none"
                            for name in missing]
                           + [f"scripts/docs: {examples[name].path}: expected a pass, found {name}"
                              for name in unknown]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = dict(zip(names, pool.map(lambda name: format_example(root, tool, name, examples[name]), names)))

    def insert(section):
        text = texts[section[1]]
        body = section[0]
        at = re.search(r"^(?:#### (?:Options|Statistics)|## |### )", body[5:], re.M)
        at = at.start() + 5 if at else len(body)
        return body[:at].rstrip("\n") + "\n\n" + text + "\n" + body[at:]

    return re.sub(r"^### `-(\S+)`\n.*?(?=^##? |^### |\Z)", insert, page, flags=re.M | re.S)
