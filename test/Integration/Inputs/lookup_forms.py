"""Writes models of one lookup each, whose index is computed from tokens in a form that exporters write. Prints the loss
of each if all tokens are T. Row r of the table holds r + 1; the loss is the sum of squares.

  lookup_forms.py FOLDER T
"""
import sys

folder, token = sys.argv[1], int(sys.argv[2])
MODEL = """#ij = affine_map<(i, j) -> (i, j)>
#ik = affine_map<(i, j, k) -> (i, k)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
#ijk_ij = affine_map<(i, j, k) -> (i, j)>
#none = affine_map<(i, j, k) -> ()>
module attributes {{fsdp.values = {{w = dense<[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0], [5.0, 5.0], [6.0, 6.0], [7.0, 7.0], [8.0, 8.0]]> : tensor<8x2xf32>}}}} {{
func.func @loss(%w: tensor<8x2xf32> {{fsdp.param = "w"}}, %ids: tensor<2x4xi64> {{fsdp.batch = "tokens"}}) -> tensor<f32> {{
  %c0 = arith.constant 0 : i64
  %c7 = arith.constant 7 : i64
  %pad = arith.constant -100 : i64
  %zero = arith.constant 0.0 : f32
  %ie = tensor.empty() : tensor<2x4xi64>
{index}
  %e = tensor.empty() : tensor<2x4x2xf32>
  %rows = linalg.generic {{indexing_maps = [#ijk_ij, #ijk], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%at : tensor<2x4xi64>) outs(%e : tensor<2x4x2xf32>) {{
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %w[%i, %c] : tensor<8x2xf32>
    linalg.yield %v : f32
  }} -> tensor<2x4x2xf32>
  %se = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {{indexing_maps = [#ijk, #none], iterator_types = ["reduction", "reduction", "reduction"]}} ins(%rows : tensor<2x4x2xf32>) outs(%s : tensor<f32>) {{
  ^bb0(%v: f32, %o: f32):
    %q = arith.mulf %v, %v : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  }} -> tensor<f32>
  return %loss : tensor<f32>
}}
}}
"""


def map_ids(source, target, body):
    return f"""  %{target} = linalg.generic {{indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}} ins(%{source} : tensor<2x4xi64>) outs(%ie : tensor<2x4xi64>) {{
  ^bb0(%a: i64, %o: i64):
{body}
    linalg.yield %y : i64
  }} -> tensor<2x4xi64>
"""


replace_pad = "    %k = arith.cmpi ne, %a, %pad : i64\n    %y = arith.select %k, %a, %c0 : i64"
argmax = """  %scores = arith.constant dense<[[[0.0, 5.0, 2.0], [9.0, 1.0, 2.0], [0.0, 1.0, 2.0], [3.0, 4.0, 3.0]], [[0.0, 5.0, 2.0], [9.0, 1.0, 2.0], [0.0, 1.0, 2.0], [3.0, 4.0, 3.0]]]> : tensor<2x4x3xf32>
  %first = linalg.fill ins(%c0 : i64) outs(%ie : tensor<2x4xi64>) -> tensor<2x4xi64>
  %fe = tensor.empty() : tensor<2x4xf32>
  %low = arith.constant 0xFF800000 : f32
  %lows = linalg.fill ins(%low : f32) outs(%fe : tensor<2x4xf32>) -> tensor<2x4xf32>
  %best:2 = linalg.generic {indexing_maps = [#ijk, #ijk_ij, #ijk_ij], iterator_types = ["parallel", "parallel", "reduction"]} ins(%scores : tensor<2x4x3xf32>) outs(%lows, %first : tensor<2x4xf32>, tensor<2x4xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %n = linalg.index 2 : index
    %ni = arith.index_cast %n : index to i64
    %mx = arith.maximumf %v, %b : f32
    %g = arith.cmpf ogt, %v, %b : f32
    %s1 = arith.select %g, %ni, %bi : i64
    linalg.yield %mx, %s1 : f32, i64
  } -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %at = tensor.cast %best#1 : tensor<2x4xi64> to tensor<2x4xi64>
"""
count = """  %none = linalg.fill ins(%c0 : i64) outs(%ie : tensor<2x4xi64>) -> tensor<2x4xi64>
  %at = linalg.generic {indexing_maps = [#ik, #ijk_ij], iterator_types = ["parallel", "parallel", "reduction"]} ins(%ids : tensor<2x4xi64>) outs(%none : tensor<2x4xi64>) {
  ^bb0(%v: i64, %sum: i64):
    %n = arith.cmpi ne, %v, %c0 : i64
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %b = arith.cmpi sle, %k, %j : index
    %nb = arith.andi %n, %b : i1
    %u = arith.extui %nb : i1 to i64
    %s1 = arith.addi %sum, %u : i64
    linalg.yield %s1 : i64
  } -> tensor<2x4xi64>
"""
# Each form of index, with the rows that one sample looks up.
forms = {
    "direct": ("  %at = tensor.cast %ids : tensor<2x4xi64> to tensor<2x4xi64>\n", [token] * 4),
    "pad": ("""  %padded = tensor.pad %ids low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %pad : i64
  } : tensor<2x4xi64> to tensor<2x5xi64>
  %shifted = tensor.extract_slice %padded[0, 1] [2, 4] [1, 1] : tensor<2x5xi64> to tensor<2x4xi64>
""" + map_ids("shifted", "at", replace_pad), [token] * 3 + [0]),
    "concat": ("""  %tail = tensor.extract_slice %ids[0, 1] [2, 3] [1, 1] : tensor<2x4xi64> to tensor<2x3xi64>
  %end = arith.constant dense<6> : tensor<2x1xi64>
  %at = tensor.concat dim(1) %tail, %end : (tensor<2x3xi64>, tensor<2x1xi64>) -> tensor<2x4xi64>
""", [token] * 3 + [6]),
    "masked": (map_ids("ids", "masked", "    %k = arith.cmpi eq, %a, %c0 : i64\n    %y = arith.select %k, %pad, %a : i64")
               + map_ids("masked", "at", replace_pad), [token] * 4),
    "clamp": (map_ids("ids", "at", """    %m = arith.muli %a, %a : i64
    %d = arith.subi %m, %c7 : i64
    %l = arith.cmpi slt, %d, %c0 : i64
    %x = arith.select %l, %c0, %d : i64
    %g = arith.cmpi sge, %x, %c7 : i64
    %y = arith.select %g, %c7, %x : i64"""), [min(max(token * token - 7, 0), 7)] * 4),
    "argmax": (argmax, [1, 0, 2, 1]),
    "count": (count, [1, 2, 3, 4] if token else [0] * 4),
    # Negative ids would be in range after wrapping, but an assert refuses them.
    "wrapped": (map_ids("ids", "at", """    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %id = arith.subi %a, %c1 : i64
    %negative = arith.cmpi slt, %id, %c0 : i64
    %up = arith.addi %id, %c8 : i64
    %y = arith.select %negative, %up, %id : i64"""), [(token - 1) % 8] * 4),
    "asserted": (map_ids("ids", "at", """    %c1 = arith.constant 1 : i64
    %y = arith.subi %a, %c1 : i64"""), [token - 1] * 4),
    # A table of integers, and a table that is read backwards.
    "integers": ("""  %places = arith.constant dense<[3, 1, 1, 0]> : tensor<4xi64>
  %at = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #ij], iterator_types = ["parallel", "parallel"]} ins(%places : tensor<4xi64>) outs(%ie : tensor<2x4xi64>) {
  ^bb0(%p: i64, %o: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %p : i64 to index
    %x = tensor.extract %steps[%i, %j] : tensor<2x4xi64>
    linalg.yield %x : i64
  } -> tensor<2x4xi64>
""", [7, 3, 3, 1]),
    "flip": ("""  %at = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%ie : tensor<2x4xi64>) {
  ^bb0(%o: i64):
    %c3 = arith.constant 3 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %c3, %j : index
    %x = tensor.extract %steps[%i, %k] : tensor<2x4xi64>
    linalg.yield %x : i64
  } -> tensor<2x4xi64>
""", [7, 5, 3, 1]),
    # An index without a bound.
    "checked": (map_ids("ids", "at", "    %m = arith.muli %a, %a : i64\n    %y = arith.subi %m, %a : i64"), [token * token - token] * 4),
}
for name, (index, rows) in forms.items():
    text = MODEL.format(index=index.rstrip("\n"))
    if name == "asserted":
        text = text.replace("    %i = arith.index_cast %id : i64 to index\n", """    %positive = arith.cmpi sge, %id, %c0 : i64
    cf.assert %positive, "index must be larger or equal to 0"
    %negative = arith.cmpi slt, %id, %c0 : i64
    %c8 = arith.constant 8 : i64
    %up = arith.addi %id, %c8 : i64
    %p = arith.select %negative, %up, %id : i64
    %i = arith.index_cast %p : i64 to index
""")
    if "%steps" in index:  # 1, 3, 5 and 7, with each token kept in the sum so that it is an input
        text = text.replace("  %at =", map_ids("ids", "steps", """    %n = linalg.index 1 : index
    %ni = arith.index_cast %n : index to i64
    %two = arith.addi %ni, %ni : i64
    %c1 = arith.constant 1 : i64
    %odd = arith.addi %two, %c1 : i64
    %k = arith.cmpi slt, %a, %c0 : i64
    %y = arith.select %k, %c0, %odd : i64""") + "  %at =", 1)
    with open(f"{folder}/{name}.mlir", "w") as file:
        file.write(text)
    print(name, sum(2 * 2 * (row + 1) ** 2 for row in rows))
