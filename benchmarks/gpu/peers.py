"""Times kernels of other libraries: PyTorch's SDPA with a backend that is asked for by name, FlashAttention 3, compiled FlexAttention and cuBLASLt. Needs
torch with a GPU. It is imported in child processes only. A module that replaces this one has the same functions and the exception Refused."""
import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
BACKENDS = {"cuDNN": "CUDNN_ATTENTION", "FA2": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


class Refused(Exception):
    """The error that a library is not installed, or does not compute the case."""


def about():
    """Returns a description of the software. Throws an error if there is no GPU."""
    if not torch.cuda.is_available():
        raise Refused(f"PyTorch {torch.__version__} finds no GPU")
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.zeros(1, device="cuda")
    return f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"


def prepare(name, case, direction):
    """Returns a function that computes the case once. Throws Refused."""
    try:
        body = product(case) if direction == "product" else attention(name, case, direction)
        body()
        torch.cuda.synchronize()
        return body
    except (RuntimeError, ImportError, NotImplementedError, ValueError, TypeError) as error:
        if "CUDA error" in str(error) or "cuda runtime error" in str(error).lower():
            raise
        raise Refused(str(error).strip().splitlines()[0][:200]) from None


def milliseconds(body, calls=1):
    """Returns the mean milliseconds of a call, measured by CUDA events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        body()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def release():
    torch.cuda.empty_cache()


def product(case):
    """Returns a function that multiplies in cuBLASLt. With a residual, it adds the other matrix but no bias."""
    draw = lambda rows, columns: torch.randn(rows, columns, device="cuda", dtype=TYPES[case["dtype"]])
    a = draw(case["k"], case["m"]).T if case["transposes"][0] == "t" else draw(case["m"], case["k"])
    b = draw(case["n"], case["k"]).T if case["transposes"][1] == "t" else draw(case["k"], case["n"])
    out = draw(case["m"], case["n"])
    if case["epilogue"] == "none":
        return lambda: torch.mm(a, b, out=out)
    added = draw(1, case["n"])[0] if case["epilogue"] == "bias" else draw(case["m"], case["n"])
    return lambda: torch.addmm(added, a, b, out=out)


def attention(name, case, direction):
    draw = lambda heads, length, d: torch.randn(case["b"], heads, length, d, device="cuda", dtype=TYPES[case["dtype"]], requires_grad=direction == "backward")
    q, k, v = draw(case["h"], case["s"], case["d"]), draw(case["hkv"], case["keys"], case["d"]), draw(case["hkv"], case["keys"], case["dv"])
    attend = attend_function(name, case, q, k, v)
    if direction == "forward":
        return torch.no_grad()(attend)
    o = attend()
    do = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)


def attend_function(name, case, q, k, v):
    """Returns a function that computes O from q, k and v."""
    is_causal, is_shared = case["mask"] == "causal", case["h"] != case["hkv"]
    if name == "FlexAttention":
        return flex_function(case, q, k, v)
    if case["score"] != "none" or case["mask"] == "documents" or (is_causal and case["s"] != case["keys"]):
        raise Refused(f"{name} has no such score function or mask")
    if name == "FA3":
        from flash_attn_interface import flash_attn_func
        def attend():
            o = flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=is_causal)
            return o[0] if isinstance(o, tuple) else o
        return attend
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = getattr(SDPBackend, BACKENDS[name])

    def attend():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=is_shared)
    return attend


def flex_function(case, q, k, v):
    from torch.nn.attention.flex_attention import flex_attention
    flex, mod, mask = torch.compile(flex_attention, dynamic=False), score_mod(case), block_mask(case)
    return lambda: flex(q, k, v, score_mod=mod, block_mask=mask, enable_gqa=case["h"] != case["hkv"])


def score_mod(case):
    if case["score"] == "softcap":
        return lambda score, b, h, i, j: 50.0 * torch.tanh(score / 50.0)
    if case["score"] == "alibi":
        slope = torch.tensor([2.0 ** (-8 * (h + 1) / case["h"]) for h in range(case["h"])], device="cuda")
        return lambda score, b, h, i, j: score + slope[h] * (j - i)
    return None


def block_mask(case):
    from torch.nn.attention.flex_attention import create_block_mask
    if case["mask"] == "none":
        return None
    offset = case["keys"] - case["s"]
    if case["mask"] == "causal":
        return create_block_mask(lambda b, h, i, j: i + offset >= j, None, None, case["s"], case["keys"], device="cuda")
    from attention import Problem
    problem = Problem(case)
    q, k = torch.tensor(problem.docq, device="cuda"), torch.tensor(problem.dock, device="cuda")
    return create_block_mask(lambda b, h, i, j: (i + offset >= j) & (q[b, i] == k[b, j]), case["b"], None, case["s"], case["keys"], device="cuda")
