"""Reads the steps of each role of an attention kernel from its PTX. A role is the program that some of the warpgroups run.

A role is represented by a list of steps in the order of the PTX text:

  ("wait", barrier)      mbarrier.try_wait          ("expect", barrier, bytes)  mbarrier.arrive.expect_tx
  ("arrive", barrier)    mbarrier.arrive            ("copy", barrier, offset)   cp.async.bulk.tensor to shared memory
  ("turn", threads)      bar.sync of a variable     ("pass", threads)           bar.arrive of a variable
  ("S", n, k, count)     wgmma, A in shared memory  ("O", n, k, count)          wgmma, A in registers
  ("products", pending)  wgmma.wait_group           ("work", instructions, ex2) everything else, counted

A barrier is named by an offset in shared memory: the offset that it has in stage 0 of its ring of buffers.
"""
import re

from pictures.tools import expect

LABEL = re.compile(r"^(\$L\w+):")
PATTERNS = [("wait", re.compile(r"mbarrier\.try_wait\.parity\S* P1, \[([^\]]+)\]")),
            ("expect", re.compile(r"mbarrier\.arrive\.expect_tx\S*\s+\S+ \[([^\]]+)\], (\S+);")),
            ("arrive", re.compile(r"mbarrier\.arrive\.shared\S*\s+\S+ \[([^\]]+)\]")),
            ("copy", re.compile(r"cp\.async\.bulk\.tensor\.\dd\.shared\S*\s+\[([^\]]+)\], \[[^\]]*\], \[([^\]]+)\]")),
            ("turn", re.compile(r"bar(?:rier)?\.sync\s+%r\d+, (\S+);")),
            ("pass", re.compile(r"bar(?:rier)?\.arrive\s+%?\w+, (\S+);")),
            ("mma", re.compile(r"wgmma\.mma_async\S*\.m64n(\d+)k(\d+)\.\S* \{[^}]*\}, (\{|\w)")),
            ("products", re.compile(r"wgmma\.wait_group\S* (\d+);"))]


class Kernel:
    def __init__(self, text):
        self.lines = [line.strip() for line in text.splitlines()]
        self.definitions = {}
        for line in self.lines:
            if m := re.match(r"(?:@%p\d+ )?([a-z][\w.:]*)\s+(%\w+)(?:\|%p\d+)?, (.*);$", line):
                self.definitions.setdefault(m[2], []).append((m[1], [part.strip() for part in m[3].split(",")]))
        self.barriers = {self.address(m[1]): self.value(m[2]) for line in self.lines
                         if (m := re.match(r"mbarrier\.init\S*\s+\[([^\]]+)\], (\S+);", line))}
        expect(self.barriers, "mbarrier.init")
        self.registers = {m[1]: int(m[2]) for line in self.lines
                          if (m := re.match(r"setmaxnreg\.(inc|dec)\S*\s+(\d+);", line))}
        self.threads = int(expect(re.search(r"\.reqntid (\d+)", text), ".reqntid")[1])

    def address(self, text):
        """Returns the constant part of an address in shared memory. The address is a text such as "%rd5+16" or "name+16"."""
        base, _, offset = text.partition("+")
        return self.value(base) + int(offset or 0)

    def value(self, name, depth=0):
        """Returns the value of a number or of a register. A register that is not constant counts as 0."""
        if re.fullmatch(r"-?\d+", name):
            return int(name)
        found = self.definitions.get(name, [])
        if depth > 40 or len(found) != 1:
            return 0
        operation, args = found[0]
        values = [self.value(arg, depth + 1) for arg in args if not arg.startswith("[")] or [0]
        kind = operation.split(".")[0]
        if kind in ("mov", "cvt", "cvta", "shfl"):
            return values[0]
        if len(values) >= 2 and kind in ("add", "sub", "mul", "shl", "shr", "and", "or", "mad"):
            a, b = values[:2]
            return {"add": a + b, "sub": a - b, "mul": a * b, "shl": a << min(max(b, 0), 63), "or": a | b,
                    "shr": a >> min(max(b, 0), 63), "and": a & b,
                    "mad": a * b + (values[2] if len(values) > 2 else 0)}[kind]
        return 0

    def steps(self, lines):
        """Returns the steps that some lines of PTX represent. Adjacent steps of the kind "work" are joined to a single step with a count.
        Adjacent products of the same kind and size are joined in the same way."""
        steps = []

        def work(ex2):
            if steps and steps[-1][0] == "work":
                steps[-1] = ("work", steps[-1][1] + 1, steps[-1][2] + ex2)
            else:
                steps.append(("work", 1, ex2))
        for line in lines:
            for kind, pattern in PATTERNS:
                if not (m := pattern.search(line)):
                    continue
                if kind == "mma":
                    step = ("O" if m[3] == "{" else "S", int(m[1]), int(m[2]))
                    mine = steps and steps[-1][:3] == step
                    count = steps.pop()[3] + 1 if mine else 1
                    steps.append((*step, count))
                elif kind == "copy":
                    steps.append((kind, self.address(m[2]), self.address(m[1])))
                elif kind == "expect":
                    steps.append((kind, self.address(m[1]), self.value(m[2])))
                elif kind in ("wait", "arrive"):
                    steps.append((kind, self.address(m[1])))
                else:
                    steps.append((kind, self.value(m[1])))
                break
            else:
                inside = line.startswith(("add.s64 \ta", "add.s64 \tb", "add.s64 a", "add.s64 b", "setp.ne.b32 zero",
                                          "setp.eq.b32 sum", "wgmma.", "bra.uni", "@P1", "mov.b64 \ta"))
                if re.match(r"(@%p\d+ )?[a-z][\w.:]*\s", line) and not inside:
                    work(int(line.startswith("ex2.")))
        return steps

    def producer(self):
        """Returns the steps of the producer, which is the warpgroup that releases registers."""
        start = next(i for i, line in enumerate(self.lines) if line.startswith("setmaxnreg.dec"))
        end = next((i for i, line in enumerate(self.lines) if i > start and line.startswith("setmaxnreg.inc")),
                   len(self.lines))
        return [step for step in self.steps(self.lines[start:end]) if step[0] in ("wait", "expect", "copy")]

    def loop_from(self, start):
        """Returns the lines of the loop whose first line is `start`. Returns nothing if no path from this line leads back to it.

        The path takes a conditional branch only if the branch leads to the line `start`.
        """
        labels = {m[1]: i for i, line in enumerate(self.lines) if (m := LABEL.match(line))}
        way, at = {}, start
        while at < len(self.lines) and at not in way:
            line = self.lines[at]
            way[at] = line
            jump = re.match(r"(@!?%p\d+ )?bra(?:\.uni)?\s+(\$L\w+);", line)
            if jump and labels[jump[2]] == start:
                return list(way.values())
            at = labels[jump[2]] if jump and not jump[1] else at + 1
        return list(way.values()) if at == start else []

    def consumer_loop(self):
        """Returns the steps of the consumer's loop, in which the products S and O run at the same time."""
        for inner, line in enumerate(self.lines):
            if not re.match(r"wgmma\.wait_group\S* 1;", line):
                continue
            starts = [i for i in range(inner) if LABEL.match(self.lines[i])
                      and any("wgmma.mma_async" in line for line in self.lines[i:inner])]
            if starts and (way := self.loop_from(starts[-1])):
                return self.steps(way)
        return expect([], "a loop around wgmma.wait_group 1")
