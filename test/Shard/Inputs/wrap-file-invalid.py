"""Runs fsdp-form-units with invalid lists of units."""
import pathlib
import subprocess
import sys

MODEL = """func.func @loss(
    %a: tensor<4x4xf32> {fsdp.param = "h.0.w", fsdp.init = #fsdp.init<constant, 0.0, 0.0>},
    %b: tensor<4x4xf32> {fsdp.param = "h.1.w", fsdp.unit = "mine", fsdp.init = #fsdp.init<constant, 0.0, 0.0>})
    -> tensor<f32> {
  %l = tensor.empty() : tensor<f32>
  return %l : tensor<f32>
}
"""
CASES = [
    ("", ":1:1: error: wrap: '{file}': not JSON: "),
    ('["h.*"', ":1:7: error: wrap: '{file}': not JSON: "),
    ("[]", ":1:1: error: wrap: expected a list of patterns such as [\"h.*\"], found an empty one"),
    ('{"h": 1}', ":1:1: error: wrap: expected a list of patterns such as [\"h.*\"], found an object"),
    ('["h.0",\n 4]', ":2:2: error: wrap: expected a pattern such as \"h.*\", found the number 4"),
    ('["h.["]', ":1:2: error: wrap: pattern 'h.[' cannot be read: invalid glob pattern, unmatched '['"),
    ('["h..0"]', ":1:2: error: wrap: pattern 'h..0' cannot be read: it has an empty component"),
    ('["h.*", "blocks.*"]',
     ":1:9: error: wrap: pattern 'blocks.*' matches no parameter; names look like 'h.0.w' and 'h.1.w'"),
    ('["h.*",\n  "h.0.w"]',
     ":2:3: error: wrap: no parameter is left for this unit: every parameter that 'h.0.w' matches, such as 'h.0.w', is in another unit"),
    ('["h.*",\n  "h.0.w"]', ":1:2: note: it is in the unit of this entry, the first that matches; put the narrower pattern first"),
    ('["h.0", "h.1"]', "note: the attribute 'fsdp.unit' of the parameter takes precedence over the list"),
    ('[{"unit": "u"}]', ":1:2: error: wrap: expected both \"unit\" and \"params\""),
    ('[{"unit": "", "params": ["h.0"]}]', ":1:11: error: wrap: expected the name of a unit, found the string \"\""),
    ('[{"unit": "u", "params": []}]', ":1:26: error: wrap: expected a list of patterns, found an empty one"),
    ('[{"unit": "u", "params": "h.0"}]',
     ":1:26: error: wrap: expected a list of patterns, found the string \"h.0\""),
    ('[{"unit": "u", "params": ["h.0", null]}]', ":1:34: error: wrap: expected a pattern such as \"h.*\", found null"),
    ('[{"name": "u", "params": ["h.0"]}]', ":1:3: error: wrap: unknown key \"name\"; expected \"unit\" and \"params\""),
    ('[{"unit": "u", "unit": "v"}]', ":1:16: error: wrap: '{file}': \"unit\" is given twice in one object"),
    ("[" * 100, ":1:65: error: wrap: '{file}': nested more than 64 deep"),
    (None, "error: wrap: '{file}': cannot be read: No such file or directory"),
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
model = folder / "model.mlir"
model.write_text(MODEL)
for number, (text, expected) in enumerate(CASES):
    file = folder / f"{number}.json"
    if text is not None:
        file.write_text(text)
    done = subprocess.run(["fsdp-opt", model, f"--fsdp-form-units=auto-wrap-policy=manual wrap={file}"],
                          capture_output=True, text=True, timeout=60)
    if expected.format(file=file) not in done.stderr or done.returncode != 1:
        sys.exit(f"case {number}: exit code {done.returncode}, expected\n  {expected.format(file=file)}\nfound\n{done.stderr}")
print(len(CASES), "files refused")
