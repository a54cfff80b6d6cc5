"""Draws attention-sm90a.svg. The picture shows the roles of the warpgroups in the attention kernel for sm_90a. The roles are read from the PTX of the
kernel (ptx.py).

 1. Give the barriers of each buffer the names "empty" and "full". The producer waits for "empty" before it starts a copy to the buffer. The copy
    signals "full" at its end. The consumer waits for "full" right before the product that reads the buffer.
 2. Print the steps of the producer's loop and of the consumer's loop.
 3. Simulate the loops of all roles. Each role has a lane of the picture, and a step begins when all steps for which it waits have ended. The first
    iteration has no product O. A cycle is the time of 2048 multiply-adds, of one instruction of a thread, or of a copy of 64 bytes.
"""
import re

from pictures.ptx import Kernel
from pictures.svg import Drawing, LINE, PANEL, contrast, size
from pictures.tools import expect

SEQ, DIM = 2112, 128
Q = f"tensor<1x8x{SEQ}x{DIM}xbf16>"
LSE = f"tensor<1x8x{SEQ}xf32>"
MODEL = f"""func.func private @attention(%q: {Q}, %k: {Q}, %v: {Q}, %o: {Q} {{fsdp.out = 0 : i64}},
    %l: {LSE} {{fsdp.out = 1 : i64}}) -> ({Q}, {LSE}) attributes {{fsdp.kernel, fsdp.kind = "attention"}} {{
  %r, %s = fsdp.attention %q, %k, %v scale 0.088388 : {Q}, {Q}, {Q} -> {Q}, {LSE}
  return %r, %s : {Q}, {LSE}
}}
"""
COLOURS = {"S": "#4477aa", "O": "#44aa99", "softmax": "#ddaa33", "scale": "#cc6677", "K": "#8877bb", "V": "#aa4466",
           "Q": "#88ccee"}
TENSOR_RATE, COPY_RATE, BLOCKS = 2048, 64, 5


class Names:
    """Performs step 1 of the list above. `names` maps each barrier to its name, as in {barrier: ("K", "full")}. For each of Q, K and V, also finds
    the size of a buffer in bytes and the number of buffers in the ring."""

    def __init__(self, kernel, producer, loop):
        self.names, self.bytes, self.places, self.copies = {}, {}, {}, {}
        order, waited = [], None
        for kind, barrier, *rest in producer:
            if kind == "wait":
                waited = barrier
            elif kind == "expect":
                order.append((waited, barrier, rest[0]))
            elif kind == "copy":
                self.copies[barrier] = self.copies.get(barrier, 0) + 1
                self.places.setdefault(barrier, rest[0])
        read, waits = {}, []
        for step in loop:
            if step[0] == "wait":
                waits.append(step[1])
            elif step[0] in "SO":
                read[step[0]] = waits[-1]
        starts = sorted(kernel.barriers)
        heads = sorted(barrier for pair in order for barrier in pair[:2] if barrier is not None)
        self.stages = {}
        for empty, full, count in order:
            tensor = {self.ring(heads, read["S"]): "K", self.ring(heads, read["O"]): "V"}.get(full, "Q")
            self.bytes[tensor] = count
            for barrier, state in ((empty, "empty"), (full, "full")):
                if barrier is None:
                    continue
                behind = [head for head in heads if head > barrier] + [starts[-1] + 8]
                mine = [start for start in starts if barrier <= start < behind[0]]
                self.stages[tensor] = len(mine)
                self.names |= {start: (tensor, state) for start in mine}
        self.where = {tensor: self.places[full] for _, full, _ in order
                      for tensor in [self.names[full][0]] if full in self.places}
        self.boxes = {self.names[barrier][0]: count for barrier, count in self.copies.items()}

    @staticmethod
    def ring(heads, barrier):
        return max(head for head in heads if head <= barrier)

    def __getitem__(self, barrier):
        return expect(self.names.get(barrier), f"the barrier at {barrier} of shared memory in both roles")


def describe(names, step):
    """Returns (instruction, meaning, colour), from which the line of a step in the drawing is made."""
    kind, first, *rest = step
    if kind in ("wait", "arrive", "expect"):
        text = {"wait": "mbarrier.try_wait", "arrive": "mbarrier.arrive", "expect": "mbarrier.arrive.expect_tx"}[kind]
        tensor, state = names[first]
        return text, f"{tensor} {state}" + (f" after {rest[0]} bytes" if rest else ""), PANEL
    if kind == "copy":
        tensor = names[first][0]
        return f"{names.boxes[tensor]} x cp.async.bulk.tensor", f"copy {tensor}", COLOURS[tensor]
    if kind in "SO":
        return (f"{rest[1]} x wgmma m64n{first}k{rest[0]}", "S = Q K\u1d40" if kind == "S" else "O = O + P V",
                COLOURS[kind])
    if kind == "turn":
        return f"bar.sync, {first} threads", "wait for its turn", PANEL
    if kind == "pass":
        return f"bar.arrive, {first} threads", "let the next warpgroup begin", PANEL
    if kind == "products":
        return f"wgmma.wait_group {first}", "wait for S" if first else "wait for O", PANEL
    if rest[0]:
        return f"{first} instructions, {rest[0]} of them ex2", "softmax", COLOURS["softmax"]
    return f"{first} instructions", "scale O, pack P", COLOURS["scale"]


def tidy(steps, least=16):
    """Removes address arithmetic from the steps, and removes each step that is equal to the step before it."""
    kept = []
    for step in steps:
        if step[0] == "work" and step[1] < least or step in kept[-1:] or \
                step[0] == "copy" and kept and kept[-1][:2] == step[:2]:
            continue
        kept.append(step)
    return kept


class Timeline:
    """Performs step 3 of the list above: simulates the loops."""

    def __init__(self, names, loop, groups):
        self.names, self.loop, self.groups = names, loop, groups
        self.spans = []  # each span is (lane, begin, end, kind, text)
        self.full, self.empty = {}, {}
        self.tensor = self.turn = 0
        self.copied = 0

    def copy(self, tensor, block, ready=0):
        begin = max(self.copied, ready)
        self.copied = begin + self.names.bytes[tensor] / COPY_RATE
        self.spans.append(("copies", begin, self.copied, tensor, f"{tensor}{block}" if block is not None else tensor))
        self.full[tensor, block] = self.copied

    def multiply(self, group, kind, block, now, step):
        columns, k, count = step[1:]
        begin = max(self.tensor, now)
        self.tensor = begin + 64 * columns * k * count / TENSOR_RATE
        self.spans.append(("products", begin, self.tensor, kind, f"{group}: {kind}{block}"))
        return self.tensor

    def release(self, tensor, block, now):
        count, latest = self.empty.get((tensor, block), (0, 0))
        self.empty[tensor, block] = count + 1, max(latest, now)
        following = block + self.names.stages[tensor]
        if count + 1 == self.groups and following < BLOCKS:
            self.copy(tensor, following, self.empty[tensor, block][1])

    def play(self, group, block, state):
        """Simulates one iteration of the loop of a role. While a step must wait for another role, yields "blocked"."""
        first, ends = block == 0, []
        for step in self.loop:
            kind, what = step[0], step[1]
            if kind == "wait":
                tensor = self.names[what][0]
                number = block if tensor == "K" else block - 1
                if number < 0:
                    continue
                while (tensor, number) not in self.full:
                    yield "blocked"
                state["now"] = max(state["now"], self.full[tensor, number])
            elif kind == "turn" and not first:
                while self.owner != group:
                    yield "blocked"
                state["now"] = max(state["now"], self.turn)
            elif kind == "pass" and not first:
                self.owner, self.turn = (group + 1) % self.groups, state["now"]
            elif kind == "S" or kind == "O" and not first:
                ends.append(self.multiply(group, kind, block if kind == "S" else block - 1, state["now"], step))
            elif kind == "products" and ends:
                pending = what if len(ends) > 1 else 0
                state["now"] = max(state["now"], ends[len(ends) - 1 - pending])
            elif kind == "arrive":
                tensor = self.names[what][0]
                if tensor == "K" or not first:
                    self.release(tensor, block if tensor == "K" else block - 1, state["now"])
            elif kind == "work":
                name = "softmax" if step[2] else "scale"
                if first and name == "scale":
                    continue
                self.spans.append((f"threads {group}", state["now"], state["now"] + what, name,
                                   str(block)))
                state["now"] += what
        yield "turn"

    def run(self):
        self.owner = 0
        self.copy("Q", None)
        for block in range(max(self.names.stages["K"], self.names.stages["V"])):
            for tensor in ("K", "V"):
                if block < self.names.stages[tensor]:
                    self.copy(tensor, block)
        states = [{"now": self.full["Q", None]} for _ in range(self.groups)]
        def play_all(group):
            for block in range(BLOCKS):
                yield from self.play(group, block, states[group])
        threads = [play_all(group) for group in range(self.groups)]
        alive = set(range(self.groups))
        for _ in range(10000):
            for group in sorted(alive, key=lambda g: (states[g]["now"], g)):
                state = next(threads[group], "end")
                if state == "end":
                    alive.discard(group)
                if state != "blocked":
                    break
            if not alive:
                return self.spans
        return expect([], "a schedule of the roles that ends")


def program(out, names, title, steps, x, y, width):
    """Draws the steps of a loop. Each step is a line of text. Returns the y below the last line."""
    out.text(x, y + 12, title, 12, bold=True)
    y += 20
    for step in steps:
        text, meaning, fill = describe(names, step)
        out.rect(x, y, width, 17, fill, LINE, radius=2)
        out.text(x + 8, y + 12.5, text, 11, contrast(fill), mono=True)
        out.text(x + width - 8, y + 12.5, meaning, 11, contrast(fill), "end")
        y += 19
    return y


def shared_memory(out, names, kernel, total, y):
    """Draws the buffers in shared memory, in the order of their offsets. The width of each buffer is proportional to its size in bytes. Returns the y
    below the buffers."""
    left, right = 10, 990
    scale = (right - left) / total
    out.text(left, y + 12, f"Shared memory of a block of threads: {size(total)}, and {len(kernel.barriers)} barriers "
             "(mbarrier.init) that say which buffers are full or empty", 12, bold=True)
    y += 20
    out.rect(left, y, right - left, 26, PANEL, LINE, "other: the result O, barriers")
    end = 0
    for tensor in sorted(names.where, key=names.where.get):
        for stage in range(names.stages[tensor]):
            place = names.where[tensor] + stage * names.bytes[tensor]
            end = max(end, place + names.bytes[tensor])
            text = f"{tensor}[{stage}]" if names.stages[tensor] > 1 else tensor
            out.box(left + place * scale, y, names.bytes[tensor] * scale, 26, f"{text} {size(names.bytes[tensor])}",
                    COLOURS[tensor], stroke=LINE)
    out.label(left + end * scale, y, (total - end) * scale, 26, f"O {size(total - end)}", PANEL)
    return y + 38


def draw(tools):
    (tools.folder / "attention.mlir").write_text(MODEL)
    text = tools.run("fsdp-kernel-test", "attention.mlir", "--target=sm_90a", "--emit=ptx")
    launch = expect(re.search(r"launch \S+: \d+ blocks of \d+ threads, (\d+) bytes of shared memory", text),
                    "launch")
    kernel = Kernel(text)
    producer, loop = kernel.producer(), tidy(kernel.consumer_loop())
    names = Names(kernel, producer, loop)
    producer = tidy(producer)
    groups = kernel.threads // 128 - 1
    columns = next(step[1] for step in loop if step[0] == "S")
    out = Drawing(1000, "The roles of the attention kernel for sm_90a")
    out.text(10, 16, f"Attention forward on sm_90a: bf16, head dimension {DIM}, no mask", 14, bold=True)
    out.text(10, 36, f"{kernel.threads} threads: a warpgroup that copies ({kernel.registers['dec']} registers a thread) "
             f"and {groups} that compute 64 rows each ({kernel.registers['inc']}); blocks of {columns} keys")
    y = shared_memory(out, names, kernel, int(launch[1]), 48)
    below = program(out, names, "Producer: one lane copies, block by block of keys", producer, 10, y, 480)
    y = max(below, program(out, names, "Each consumer warpgroup: one turn of its loop", loop, 510, y, 480)) + 10
    return lanes(out, Timeline(names, loop, groups).run(), groups, y)


def lanes(out, spans, groups, y):
    out.text(10, y + 12, f"The first {BLOCKS} blocks of keys. 0: S1 is the product S of warpgroup 0 with block 1 of the "
             "keys", 12, bold=True)
    y += 22
    left, right = 110, 990
    scale = (right - left) / max(end for _, _, end, *_ in spans)
    rows = [("copies", "copies (TMA)"), ("products", "tensor cores"),
            *((f"threads {group}", f"warpgroup {group}") for group in range(groups))]
    for lane, title in rows:
        out.text(left - 8, y + 17, title, 12, anchor="end")
        out.line([(left, y + 25), (right, y + 25)], LINE, 0.5)
        for name, begin, end, kind, text in spans:
            if name == lane:
                out.box(left + begin * scale, y, (end - begin) * scale, 25, text, COLOURS[kind], 10)
        y += 29
    out.text(10, y + 12, f"Order, barriers and counts are those of the PTX. Widths are estimates: {TENSOR_RATE} "
             f"multiply-adds and {COPY_RATE} bytes a cycle, one instruction of a warp a cycle.", 11)
    return out
