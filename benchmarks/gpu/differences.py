"""Counts differing words of two ranges of device memory, on the device, by a kernel in PTX."""
import ctypes

PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry count_differences(.param .u64 left, .param .u64 right, .param .u64 words, .param .u64 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<9>;
  ld.param.u64 %d0, [left];
  ld.param.u64 %d1, [right];
  ld.param.u64 %d2, [words];
  ld.param.u64 %d3, [count];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  mov.u32 %r4, %nctaid.x;
  mul.lo.u32 %r5, %r4, %r1;
  cvt.u64.u32 %d4, %r3;
  cvt.u64.u32 %d5, %r5;
LOOP:
  setp.ge.u64 %p0, %d4, %d2;
  @%p0 bra END;
  shl.b64 %d6, %d4, 2;
  add.s64 %d7, %d0, %d6;
  add.s64 %d8, %d1, %d6;
  ld.global.u32 %r6, [%d7];
  ld.global.u32 %r7, [%d8];
  setp.eq.u32 %p1, %r6, %r7;
  @%p1 bra NEXT;
  red.global.add.u32 [%d3], 1;
NEXT:
  add.s64 %d4, %d4, %d5;
  bra LOOP;
END:
  ret;
}
"""
BLOCKS, THREADS = 528, 256


class Differences:
    """Counters on the device of differing words of 4 bytes, one for each stream."""

    def __init__(self, driver):
        self.driver, self.module = driver, driver.load(PTX)
        self.function, self.counts = driver.function(self.module, "count_differences", 0), []

    def counter(self):
        """Returns the address of a new counter."""
        self.counts.append(self.driver.allocate(4))
        self.driver.fill(self.counts[-1], 0, 4)
        return self.counts[-1]

    def prepare(self, left, right, size, counter, stream):
        """Returns a function that compares two ranges of `size` bytes, rounded down to a multiple of 4, and adds to a counter."""
        words = size // 4
        arguments = [ctypes.c_ulonglong(each) for each in (left, right, words, counter)]
        return self.driver.prepare(self.function, max(1, min(BLOCKS, words // THREADS)), THREADS, 0, arguments, stream=stream)

    def found(self):
        return sum(int.from_bytes(self.driver.download(count, 4), "little") for count in self.counts)

    def release(self):
        for count in self.counts:
            self.driver.free(count)
        self.driver.unload(self.module)
