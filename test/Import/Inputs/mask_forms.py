"""Writes attention whose scores are masked by finite numbers.

  mask_forms.py NAME

NAME is a key of KEEP: a condition on row %i and key %j, both i64, and on tensors of the batch.
"""
import sys

# An element of the row and one of the key.
PAIR = """
    %a = tensor.extract %ids[%b, %row] : tensor<2x6xi64>
    %c = tensor.extract %ids[%b, %key] : tensor<2x6xi64>"""
KEEP = {
    # A causal mask in packed documents: each row keeps its own key.
    "documents": PAIR + """
    %same = arith.cmpi eq, %a, %c : i64
    %past = arith.cmpi sle, %j, %i : i64
    %keep = arith.andi %same, %past : i1""",
    # The same by differences, of documents two apart.
    "difference": PAIR + """
    %d = arith.subi %a, %c : i64
    %far = math.absi %d : i64
    %two = arith.constant 2 : i64
    %keep = arith.cmpi sle, %far, %two : i64""",
    # Computed from elements in the same way.
    "blocks": PAIR + """
    %four = arith.constant 4 : i64
    %first = arith.divsi %a, %four : i64
    %second = arith.divsi %c, %four : i64
    %keep = arith.cmpi uge, %first, %second : i64""",
    # A row does not keep its own key.
    "strict": PAIR + """
    %same = arith.cmpi eq, %a, %c : i64
    %past = arith.cmpi slt, %j, %i : i64
    %keep = arith.andi %same, %past : i1""",
    "unequal": PAIR + """
    %keep = arith.cmpi ne, %a, %c : i64""",
    # Elements of different tensors, and of different batches.
    "tensors": """
    %a = tensor.extract %ids[%b, %row] : tensor<2x6xi64>
    %c = tensor.extract %others[%b, %key] : tensor<2x6xi64>
    %keep = arith.cmpi eq, %a, %c : i64""",
    "samples": """
    %none = arith.constant 0 : index
    %a = tensor.extract %ids[%b, %row] : tensor<2x6xi64>
    %c = tensor.extract %ids[%none, %key] : tensor<2x6xi64>
    %keep = arith.cmpi eq, %a, %c : i64""",
    # Different functions of one element.
    "functions": PAIR + """
    %four = arith.constant 4 : i64
    %first = arith.divsi %a, %four : i64
    %second = arith.remsi %c, %four : i64
    %keep = arith.cmpi eq, %first, %second : i64""",
    # A key that the batch may mask.
    "padding": """
    %a = tensor.extract %ids[%b, %key] : tensor<2x6xi64>
    %none = arith.constant 0 : i64
    %full = arith.cmpi ne, %a, %none : i64
    %past = arith.cmpi sle, %j, %i : i64
    %keep = arith.andi %full, %past : i1""",
    # A table of bytes that became one of bits, and then a part of it.
    "bits": """
    %keep = tensor.extract %part[%row, %key] : tensor<6x6xi1>""",
    "odd bits": """
    %last = arith.constant 5 : index
    %turned = arith.subi %last, %row : index
    %keep = tensor.extract %part[%turned, %key] : tensor<6x6xi1>""",
}
# Forms of a lower bound: op and condition.
BOUNDS = {
    "maximum": "%y = arith.maximumf %m, %low : f32",
    "greater": "%g = arith.cmpf ogt, %m, %low : f32\n    %y = arith.select %g, %m, %low : f32",
    "less": "%g = arith.cmpf ult, %low, %m : f32\n    %y = arith.select %g, %m, %low : f32",
    "not less": "%g = arith.cmpf olt, %m, %low : f32\n    %y = arith.select %g, %low, %m : f32",
    "minimum": "%g = arith.cmpf ogt, %m, %low : f32\n    %y = arith.select %g, %low, %m : f32",
    "other bound": "%o1 = arith.constant -1.0e9 : f32\n    %g = arith.cmpf ogt, %m, %o1 : f32\n"
                   "    %y = arith.select %g, %m, %low : f32",
    # The scale after the mask.
    "divided": "%four = arith.constant 4.0 : f32\n    %y = arith.divf %m, %four : f32",
    "other value": "%g = arith.cmpf ogt, %s, %low : f32\n    %y = arith.select %g, %m, %low : f32",
}

name = sys.argv[1]
if name in KEEP:
    keep, masked = KEEP[name], "%y = arith.select %keep, %s, %low : f32"
else:
    keep = "\n    %keep = arith.cmpi sle, %j, %i : i64"
    masked = f"""%none = arith.constant 0.0 : f32
    %add = arith.select %keep, %none, %low : f32
    %m = arith.addf %s, %add : f32
    {BOUNDS[name]}"""
ROWS = [[0, 1, 0, 0, 0, 0, 1, 1], [0] * 8, [1] + [0] * 7, [0] * 8, [0, 0, 0, 0, 0, 1, 0, 0], [0] * 8,
        [0, 0, 1] + [0] * 5, [0] * 8, [0, 1] + [0] * 6, [0] * 8, [0, 0, 0, 1] + [0] * 4, [0] * 8]
if name == "odd bits":
    ROWS[4] = [0] * 6 + [1, 1]  # of the columns that are read, none
print(f"""
#q = affine_map<(b, d, h, m, n) -> (b, h, m, d)>
#k = affine_map<(b, d, h, m, n) -> (b, h, n, d)>
#s = affine_map<(b, d, h, m, n) -> (b, h, m, n)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#two = affine_map<(i, j) -> (i, j)>
func.func @masked(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>,
                  %ids: tensor<2x6xi64> {{fsdp.batch = "ids"}}, %others: tensor<2x6xi64> {{fsdp.batch = "others"}}) -> tensor<2x4x6x8xf32> {{
  %zero = arith.constant 0.0 : f32
  %bytes = arith.constant dense<{ROWS}> : tensor<12x8xi8>
  %be = tensor.empty() : tensor<12x8xi1>
  %table = linalg.generic {{indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}} ins(%bytes : tensor<12x8xi8>) outs(%be : tensor<12x8xi1>) {{
  ^bb0(%byte: i8, %o: i1):
    %nothing = arith.constant 0 : i8
    %bit = arith.cmpi ne, %byte, %nothing : i8
    linalg.yield %bit : i1
  }} -> tensor<12x8xi1>
  %part = tensor.extract_slice %table[0, 0] [6, 6] [2, 1] : tensor<12x8xi1> to tensor<6x6xi1>
  %se = tensor.empty() : tensor<2x4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) outs(%sz : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %f = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins(%scores : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) {{
  ^bb0(%s: f32, %o: f32):
    %low = arith.constant -3.40282347E+38 : f32
    %b = linalg.index 0 : index
    %row = linalg.index 2 : index
    %key = linalg.index 3 : index
    %i = arith.index_cast %row : index to i64
    %j = arith.index_cast %key : index to i64{keep}
    {masked}
    linalg.yield %y : f32
  }} -> tensor<2x4x6x6xf32>
  %p = linalg.softmax dimension(3) ins(%f : tensor<2x4x6x6xf32>) outs(%se : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %oe = tensor.empty() : tensor<2x4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r = linalg.contract indexing_maps = [#s, #k, #q] ins(%p, %v : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%oz : tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}}""")
