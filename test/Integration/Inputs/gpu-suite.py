"""Plants faults into a bundle in the current folder."""
import json
import pathlib
import re

pathlib.Path("sm_80/kernels.cubin").unlink(missing_ok=True)
path = pathlib.Path("sm_80/kernels.json")
description = json.loads(path.read_text())
kernels = {kernel["name"]: kernel for kernel in description["kernels"]}
kernels["fwd_bf16_1x2x1_37x53_64x64_none_none"]["launches"][0]["blocks"] -= 1
kernels["fwd_bf16_1x2x2_33x40_96x96_alibi_causal"]["launches"][0]["sharedBytes"] //= 2
path.write_text(json.dumps(description))
path = pathlib.Path("sm_80/kernels.ptx")
before, entry, rest = path.read_text().partition(".entry fwd_bf16_1x2x2_70x70_64x64_softcap_causal(")
body, end, after = rest.partition("\n}\n")
changed = re.sub("0f3E000000", "0f3E080000", body)  # 0.125 becomes 0.1328
assert changed != body
path.write_text(before + entry + changed + end + after)
