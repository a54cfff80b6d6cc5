"""Writes a model with a constant of 1.2 MB: large-constant.py OUT.mlir"""
import sys

N = 300 * 1024
with open(sys.argv[1], "w") as out:
    out.write(f"""func.func @f(%w: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<{N}xf32>) {{
  %t = arith.constant dense_resource<large> : tensor<{N}xf32>
  return %w, %t : tensor<4xf32>, tensor<{N}xf32>
}}
{{-# dialect_resources: {{builtin: {{large: "0x04000000{"0000803F" * N}"}}}} #-}}
""")
