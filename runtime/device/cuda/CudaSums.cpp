//===- CudaSums.cpp - Sums of ranks' memory on a GPU ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each thread of the kernel computes a vector of 16 bytes of the result. If an address is not
// aligned to 16 bytes, each thread computes a single element instead. Each element after the last
// whole vector is also computed by a thread of its own. A thread loads the values of four sources
// at a time and then adds these values one by one. If the elements are f64, the sum is computed in
// f64, and otherwise in f32.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaSums.h"
#include "core/Error.h"
#include <vector>

using namespace fsdprt;

static constexpr unsigned vectorBytes = 16, atOnce = 4;

namespace {
struct Form {
  const char *name, *sum; ///< names of the element type and of the type of sums in PTX
  unsigned bytes;
};
constexpr Form forms[] = {
    {"f64", "f64", 8}, {"f32", "f32", 4}, {"f16", "f32", 2}, {"bf16", "f32", 2}}; // by DType

/// Generates the kernel for one element type. The registers %w contain the loaded words, the
/// register %x contains a converted value, and the registers %a contain sums. A word consists of 4
/// bytes.
class Writer {
public:
  explicit Writer(const Form &form)
      : form(form), isHalf(form.bytes == 2), isDouble(form.bytes == 8),
        elements(vectorBytes / form.bytes) {}
  std::string kernel();

private:
  void line(const std::string &text) { out += "  " + text + "\n"; }
  void loop(const char *label, unsigned values, void (Writer::*load)(unsigned),
            void (Writer::*add)(unsigned));
  void loadVector(unsigned k);
  void addVector(unsigned k);
  void loadElement(unsigned k);
  void addElement(unsigned k);
  void addHalf(unsigned k, unsigned value, const std::string &half);
  void scale(unsigned values);
  void storeVector();
  void storeElement();
  std::string word(unsigned k, unsigned i) const { return "%w" + std::to_string(k * 4 + i); }
  static std::string sum(unsigned i) { return "%a" + std::to_string(i); }

  const Form &form;
  bool isHalf, isDouble;
  unsigned elements;
  std::string out;
};
} // namespace

static std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return "{" + text + "}";
}

void Writer::loadVector(unsigned k) {
  std::vector<std::string> words;
  for (unsigned i = 0; i < (isDouble ? 2 : 4); ++i)
    words.push_back(isDouble ? "%d" + std::to_string(k * 2 + i) : word(k, i));
  line(format("@%%q%u ld.global.v%zu.%s %s, [%%s%u];", k, words.size(), isDouble ? "f64" : "b32",
              joined(words).c_str(), k));
}

/// `half` is a register with a 16-bit value of source `k`. Generates code that adds this value to
/// the sum with the index `value`.
void Writer::addHalf(unsigned k, unsigned value, const std::string &half) {
  if (form.name[0] == 'b') {
    line(format("@%%q%u mov.b32 %%u, {%%zero, %s};", k,
                // The bits of a bf16 are the upper half of the bits of an f32.
                half.c_str()));
    line(format("@%%q%u mov.b32 %%x, %%u;", k));
  } else {
    line(format("@%%q%u cvt.f32.f16 %%x, %s;", k, half.c_str()));
  }
  line(format("@%%q%u add.rn.f32 %s, %s, %%x;", k, sum(value).c_str(), sum(value).c_str()));
}

void Writer::addVector(unsigned k) {
  for (unsigned i = 0; i < elements; ++i) {
    if (isHalf) {
      if (i % 2 == 0)
        line(format("@%%q%u mov.b32 {%%h0, %%h1}, %s;", k, word(k, i / 2).c_str()));
      addHalf(k, i, format("%%h%u", i % 2));
    } else if (isDouble) {
      line(
          format("@%%q%u add.rn.f64 %s, %s, %%d%u;", k, sum(i).c_str(), sum(i).c_str(), k * 2 + i));
    } else {
      line(format("@%%q%u mov.b32 %%x, %s;", k, word(k, i).c_str()));
      line(format("@%%q%u add.rn.f32 %s, %s, %%x;", k, sum(i).c_str(), sum(i).c_str()));
    }
  }
}

void Writer::loadElement(unsigned k) {
  if (isHalf)
    line(format("@%%q%u ld.global.b16 %%e%u, [%%s%u];", k, k, k));
  else
    line(format("@%%q%u ld.global.%s %s%u, [%%s%u];", k, form.sum, isDouble ? "%d" : "%y", k, k));
}

void Writer::addElement(unsigned k) {
  if (isHalf)
    return addHalf(k, 0, format("%%e%u", k));
  line(format("@%%q%u add.rn.%s %%a0, %%a0, %s%u;", k, form.sum, isDouble ? "%d" : "%y", k));
}

/// Generates the loop over all sources. Each iteration of this loop adds `atOnce` sources. The
/// register %offset contains the offset, in bytes, of the thread's elements.
void Writer::loop(const char *label, unsigned values, void (Writer::*load)(unsigned),
                  void (Writer::*add)(unsigned)) {
  for (unsigned i = 0; i < values; ++i)
    line(format("mov.%s %s, %s;", form.sum, sum(i).c_str(),
                isDouble ? "0d0000000000000000" : "0f00000000"));
  line("mov.u32 %j, 0;");
  line("mov.b64 %table, sources;");
  out += format("%s:\n", label);
  for (unsigned k = 0; k < atOnce; ++k) {
    line(format("add.u32 %%u, %%j, %u;", k));
    line(format("setp.lt.u32 %%q%u, %%u, %%members;", k));
    line(format("mov.u64 %%s%u, 0;", k));
    line(format("@%%q%u ld.param.u64 %%s%u, [%%table+%u];", k, k, k * 8));
    line(format("setp.ne.u64 %%q%u, %%s%u, 0;", k, k));
    line(format("add.u64 %%s%u, %%s%u, %%offset;", k, k));
  }
  for (unsigned k = 0; k < atOnce; ++k)
    (this->*load)(k);
  for (unsigned k = 0; k < atOnce; ++k)
    (this->*add)(k);
  line(format("add.u32 %%j, %%j, %u;", atOnce));
  line(format("add.u64 %%table, %%table, %u;", atOnce * 8));
  line("setp.lt.u32 %p, %j, %members;");
  line(format("@%%p bra %s;", label));
  scale(values);
}

void Writer::scale(unsigned values) {
  for (unsigned i = 0; i < values; ++i)
    line(format("mul.rn.%s %s, %s, %%scale;", form.sum, sum(i).c_str(), sum(i).c_str()));
}

void Writer::storeVector() {
  std::vector<std::string> words;
  for (unsigned i = 0; i < (isDouble ? 2 : 4); ++i) {
    words.push_back(isHalf ? word(0, i) : sum(i));
    // cvt converts its first source operand to the upper half of the result.
    if (isHalf)
      line(format("cvt.rn.%sx2.f32 %s, %s, %s;", form.name, word(0, i).c_str(),
                  sum(2 * i + 1).c_str(), sum(2 * i).c_str()));
  }
  line(format("st.global.v%zu.%s [%%to], %s;", words.size(), isHalf ? "b32" : form.sum,
              joined(words).c_str()));
}

void Writer::storeElement() {
  if (!isHalf)
    return line(format("st.global.%s [%%to], %%a0;", form.sum));
  line(format("cvt.rn.%s.f32 %%e0, %%a0;", form.name));
  line("st.global.b16 [%to], %e0;");
}

std::string Writer::kernel() {
  out = format(".visible .entry fsdprt_sum_%s(.param .align 8 .b8 sources[%u], .param .u64 target, "
               ".param .u32 members, .param .f64 factor,\n"
               "    .param .u64 vectors, .param .u64 elements)\n{\n",
               form.name, CudaSums::mostSources * 8);
  line(format(".reg .pred %%p, %%q<%u>;", atOnce));
  line(".reg .b16 %zero, %h<2>, %e<4>;");
  line(".reg .b32 %u, %j, %members, %block, %size, %thread, %w<16>;");
  line(".reg .b64 %table, %offset, %to, %index, %vectors, %elements, %s<4>;");
  line(".reg .f64 %wide, %d<8>;");
  line(".reg .f32 %x, %y<4>;");
  line(format(".reg .%s %%scale, %%a<8>;", form.sum));
  line("mov.b16 %zero, 0;");
  line("mov.u32 %block, %ctaid.x;");
  line("mov.u32 %size, %ntid.x;");
  line("mov.u32 %thread, %tid.x;");
  line("cvt.u64.u32 %index, %thread;");
  line("mad.wide.u32 %index, %block, %size, %index;");
  line("ld.param.u32 %members, [members];");
  line("ld.param.u64 %vectors, [vectors];");
  line("ld.param.u64 %elements, [elements];");
  line("ld.param.u64 %to, [target];");
  line("ld.param.f64 %wide, [factor];");
  line(isDouble ? "mov.f64 %scale, %wide;" : "cvt.rn.f32.f64 %scale, %wide;");
  line("setp.ge.u64 %p, %index, %vectors;");
  line("@%p bra SINGLE;");
  line(format("mul.lo.u64 %%offset, %%index, %u;", vectorBytes));
  line("add.u64 %to, %to, %offset;");
  loop("VECTORS", elements, &Writer::loadVector, &Writer::addVector);
  storeVector();
  line("ret;");
  out += "SINGLE:\n";
  line("sub.u64 %index, %index, %vectors;");
  line(format("mad.lo.u64 %%index, %%vectors, %u, %%index;", elements));
  line("setp.ge.u64 %p, %index, %elements;");
  line("@%p bra END;");
  line(format("mul.lo.u64 %%offset, %%index, %u;", form.bytes));
  line("add.u64 %to, %to, %offset;");
  loop("ELEMENTS", 1, &Writer::loadElement, &Writer::addElement);
  storeElement();
  out += "END:\n";
  line("ret;");
  return out + "}\n";
}

std::string CudaSums::ptx() {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n";
  for (const Form &form : forms)
    text += Writer(form).kernel();
  return text;
}

CudaSums::Shape CudaSums::shapeOf(DType type, uint64_t elements, uint64_t bits) {
  uint64_t each = vectorBytes / sizeOf(type),
           vectors = bits % vectorBytes == 0 ? elements / each : 0;
  return {vectors, (vectors + (elements - vectors * each) + threads - 1) / threads};
}

CudaSums::CudaSums(const CudaDriver &cuda) : cuda(cuda) {
  std::string text = ptx();
  module = cuda.translate(text.c_str(), "the runtime's own kernels");
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::string name = std::string("fsdprt_sum_") + forms[static_cast<int>(type)].name;
    functions[static_cast<int>(type)] =
        cuda.load(module, name.c_str(), "find one of the runtime's own kernels");
  }
}

CudaSums::~CudaSums() { cuda.moduleUnload(module); }

void CudaSums::launch(CudaStream stream, DType type, bool isAverage, const Sources &sources,
                      uint64_t elements, CudaPointer target) const {
  if (elements == 0)
    return;
  uint64_t bits = target;
  for (CudaPointer source : sources.at)
    bits |= source;
  Shape shape = shapeOf(type, elements, bits);
  uint32_t members = sources.count;
  double factor = !isAverage           ? 1
                  : type == DType::f64 ? 1.0 / members
                                       : static_cast<double>(1.0f / static_cast<float>(members));
  void *arguments[] = {const_cast<CudaPointer *>(sources.at.data()),
                       &target,
                       &members,
                       &factor,
                       &shape.vectors,
                       &elements};
  cuda.check(cuda.launchKernel(functions[static_cast<int>(type)],
                               static_cast<unsigned>(shape.blocks), 1, 1, threads, 1, 1, 0, stream,
                               arguments, nullptr),
             "launch a sum of ranks");
}
