// Ops that --convert-linalg-to-loops does not lower: softmax and concat.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %softmax = transform.structured.match ops{["linalg.softmax"]} in %module
        : (!transform.any_op) -> !transform.op<"linalg.softmax">
    %parts = transform.structured.decompose_interface %softmax
        : (!transform.op<"linalg.softmax">) -> !transform.any_op
    %function = transform.structured.match ops{["func.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.tensor.decompose_concat
    } : !transform.any_op
    transform.yield
  }
}
