"""Plants faults into a bundle in the current folder."""
import json
import pathlib
import re


def folder(name, chip="sm_80"):
    path = pathlib.Path(name, chip)
    (path / "kernels.cubin").unlink(missing_ok=True)
    return path


def change_launch(name, change, prefix="fwd_", chip="sm_80"):
    path = folder(name, chip) / "kernels.json"
    description = json.loads(path.read_text())
    change(next(kernel for kernel in description["kernels"] if kernel["name"] == prefix + name)["launches"][0])
    path.write_text(json.dumps(description))


def shorten(launch):
    launch["maps"][0]["sizes"][1] -= 1


change_launch("nt_bf16_0x520x2056x72_none_bf16", shorten, "", "sm_90a")
change_launch("bf16_1x2x1_37x53_64x64_none_none", lambda launch: launch.update(blocks=launch["blocks"] - 1))
change_launch("bf16_1x2x2_33x40_96x96_alibi_causal", lambda launch: launch.update(sharedBytes=launch["sharedBytes"] // 2))
broken = folder("f16_1x2x1_65x130_128x128_none_documents", "sm_90a") / "kernels.ptx"
broken.write_text(broken.read_text()[:900])
name = "bf16_1x2x2_70x70_64x64_softcap_causal"
path = folder(name) / "kernels.ptx"
before, entry, rest = path.read_text().partition(f".entry fwd_{name}(")
body, end, after = rest.partition("\n}\n")
changed = re.sub("0f3E000000", "0f3E080000", body)  # 0.125 becomes 0.1328
assert changed != body
path.write_text(before + entry + changed + end + after)


def narrow(launch):
    launch["maps"][0]["strides"][0] = 8  # not a multiple of 16


change_launch("tn_f16_0x264x4104x40_bias_f16", narrow, "", "sm_90a")
