"""attention_captures.py S: prints a model with one layer of causal attention and grouped heads. Its score function captures
a number per head, a table by distance, and a bias per head and pair, all trained. The last two start at 0, so that a step
shows all bits of their gradients."""
import sys

S = int(sys.argv[1])
B, H, G, D, V = 2, 4, 2, 16, 37
N, E, K = B * S, H * D, G * D


def heads(name, count):
    width, view = count * D, f"tensor<{B}x{S}x{count}x{D}xf32>"
    return f"""
  %{name}e = tensor.empty() : tensor<{N}x{width}xf32>
  %{name}z = linalg.fill ins(%zero : f32) outs(%{name}e : tensor<{N}x{width}xf32>) -> tensor<{N}x{width}xf32>
  %{name}0 = linalg.matmul ins(%x, %w{name} : tensor<{N}x{E}xf32>, tensor<{E}x{width}xf32>) outs(%{name}z : tensor<{N}x{width}xf32>) -> tensor<{N}x{width}xf32>
  %{name}1 = tensor.expand_shape %{name}0 [[0, 1], [2, 3]] output_shape [{B}, {S}, {count}, {D}] : tensor<{N}x{width}xf32> into {view}
  %{name}2 = tensor.empty() : tensor<{B}x{count}x{S}x{D}xf32>
  %{name} = linalg.transpose ins(%{name}1 : {view}) outs(%{name}2 : tensor<{B}x{count}x{S}x{D}xf32>) permutation = [0, 2, 1, 3]"""


Q, KV, L = f"tensor<{B}x{H}x{S}x{D}xf32>", f"tensor<{B}x{G}x{S}x{D}xf32>", f"tensor<{B}x{H}x{S}xf32>"
captured = {"m": f"tensor<{H}xf32>", "t": f"tensor<{S}xf32>", "c": f"tensor<{H}x{S}x{S}xf32>"}
arguments = "%b: index, %h: index, %i: index, %j: index, " + ", ".join(f"%{n}: {t}" for n, t in captured.items())
print(f"""
func.func @loss(%wte: tensor<{V}x{E}xf32> {{fsdp.param = "wte.weight"}}, %wq: tensor<{E}x{E}xf32> {{fsdp.param = "h.0.q.weight"}},
                %wk: tensor<{E}x{K}xf32> {{fsdp.param = "h.0.k.weight"}}, %wv: tensor<{E}x{K}xf32> {{fsdp.param = "h.0.v.weight"}},
                %slope: {captured["m"]} {{fsdp.param = "h.0.slope", fsdp.init = #fsdp.init<constant, 0.01, 0.0>}},
                %table: {captured["t"]} {{fsdp.param = "h.0.table", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}},
                %bias: {captured["c"]} {{fsdp.param = "h.0.bias", fsdp.init = #fsdp.init<constant, 0.0, 0.0>}},
                %head: tensor<{E}x{V}xf32> {{fsdp.param = "lm_head.weight"}},
                %ids: tensor<{B}x{S}xi64> {{fsdp.batch = "tokens", fsdp.limit = {V} : i64}},
                %tgt: tensor<{B}x{S}xi64> {{fsdp.batch = "targets", fsdp.limit = {V} : i64}}) -> tensor<f32> {{
  %zero = arith.constant 0.0 : f32
  %e = fsdp.gather_rows %wte[%ids] : tensor<{V}x{E}xf32>, tensor<{B}x{S}xi64> -> tensor<{B}x{S}x{E}xf32>
  %x = tensor.collapse_shape %e [[0, 1], [2]] : tensor<{B}x{S}x{E}xf32> into tensor<{N}x{E}xf32>
  {heads("q", H)}{heads("k", G)}{heads("v", G)}
  %o, %lse = fsdp.attention %q, %k, %v scale 0.25 capture(%slope, %table, %bias : {", ".join(captured.values())})
      : {Q}, {KV}, {KV} -> {Q}, {L}
      score_mod(%s: f32, {arguments}) {{
    %d = arith.subi %i, %j : index
    %none = arith.constant 0 : index
    %past = arith.maxsi %d, %none : index
    %d64 = arith.index_cast %d : index to i64
    %distance = arith.sitofp %d64 : i64 to f32
    %mh = tensor.extract %m[%h] : {captured["m"]}
    %far = arith.mulf %mh, %distance : f32
    %learned = tensor.extract %t[%past] : {captured["t"]}
    %own = tensor.extract %c[%h, %i, %j] : {captured["c"]}
    %s1 = arith.subf %s, %far : f32
    %s2 = arith.addf %s1, %learned : f32
    %s3 = arith.addf %s2, %own : f32
    fsdp.yield %s3 : f32
  }} mask_mod({arguments}) {{
    %keep = arith.cmpi sge, %i, %j : index
    fsdp.yield %keep : i1
  }}
  %oe = tensor.empty() : tensor<{B}x{S}x{H}x{D}xf32>
  %o1 = linalg.transpose ins(%o : {Q}) outs(%oe : tensor<{B}x{S}x{H}x{D}xf32>) permutation = [0, 2, 1, 3]
  %o2 = tensor.collapse_shape %o1 [[0, 1], [2, 3]] : tensor<{B}x{S}x{H}x{D}xf32> into tensor<{N}x{E}xf32>
  %le = tensor.empty() : tensor<{N}x{V}xf32>
  %lz = linalg.fill ins(%zero : f32) outs(%le : tensor<{N}x{V}xf32>) -> tensor<{N}x{V}xf32>
  %logits = linalg.matmul ins(%o2, %head : tensor<{N}x{E}xf32>, tensor<{E}x{V}xf32>) outs(%lz : tensor<{N}x{V}xf32>) -> tensor<{N}x{V}xf32>
  %t1 = tensor.collapse_shape %tgt [[0, 1]] : tensor<{B}x{S}xi64> into tensor<{N}xi64>
  %loss, %l = fsdp.cross_entropy %logits, %t1 : tensor<{N}x{V}xf32>, tensor<{N}xi64> -> tensor<f32>, tensor<{N}xf32>
  return %loss : tensor<f32>
}}""")
