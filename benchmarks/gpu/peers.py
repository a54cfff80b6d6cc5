"""Times kernels of other libraries: PyTorch's SDPA with each backend, compiled FlexAttention, and cuBLAS. Needs torch with a GPU."""
import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def tensors(case):
    draw = lambda heads, length, d: torch.randn(case["b"], heads, length, d, device="cuda", dtype=TYPES[case["dtype"]], requires_grad=True)
    q, k, v = draw(case["h"], case["s"], case["d"]), draw(case["hkv"], case["keys"], case["d"]), draw(case["hkv"], case["keys"], case["dv"])
    return q, k, v, torch.randn(case["b"], case["h"], case["s"], case["dv"], device="cuda", dtype=TYPES[case["dtype"]])


def score_mod(case, problem):
    if case["score"] == "softcap":
        return lambda score, b, h, i, j: 50.0 * torch.tanh(score / 50.0)
    if case["score"] == "alibi":
        slope = torch.tensor(problem.slope, device="cuda")
        return lambda score, b, h, i, j: score + slope[h] * (j - i)
    return None


def block_mask(case, problem):
    from torch.nn.attention.flex_attention import create_block_mask
    if case["mask"] == "none":
        return None
    offset = case["keys"] - case["s"]
    if case["mask"] == "causal":
        return create_block_mask(lambda b, h, i, j: i + offset >= j, None, None, case["s"], case["keys"], device="cuda")
    q, k = torch.tensor(problem.docq, device="cuda"), torch.tensor(problem.dock, device="cuda")
    return create_block_mask(lambda b, h, i, j: (i + offset >= j) & (q[b, i] == k[b, j]), case["b"], None, case["s"], case["keys"], device="cuda")


def attend_functions(case, problem):
    """Returns {name: function of q, k, v} for the libraries that compute the case. A function raises an error at its first call if it refuses the case."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import flex_attention
    functions = {}
    if case["score"] == "none" and case["mask"] != "documents" and (case["mask"] == "none" or case["s"] == case["keys"]):
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION),
                              ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
            def attend(q, k, v, backend=backend):
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case["mask"] == "causal",
                                                                            enable_gqa=case["h"] != case["hkv"])
            functions[f"SDPA {name}"] = attend
    mod, mask = score_mod(case, problem), block_mask(case, problem)
    flex = torch.compile(flex_attention, dynamic=False)
    functions["FlexAttention"] = lambda q, k, v: flex(q, k, v, score_mod=mod, block_mask=mask, enable_gqa=case["h"] != case["hkv"])
    return functions


def contenders(case, problem, direction):
    """Returns two dicts: {name: function that runs the case once}, and {name: reason} for the libraries that refuse the case."""
    q, k, v, do = tensors(case)
    ready, refusals = {}, {}
    for name, attend in attend_functions(case, problem).items():
        try:
            if direction == "forward":
                with torch.no_grad():
                    attend(q, k, v)
                ready[name] = lambda attend=attend: torch.no_grad()(attend)(q, k, v)
            else:
                o = attend(q, k, v)
                torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
                ready[name] = lambda o=o: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
        except Exception as error:  # exception types differ between libraries
            refusals[name] = str(error).strip().splitlines()[0][:200]
    return ready, refusals


def products(case):
    """Returns {"cuBLAS": function that runs the product once} and an empty dict. If cuBLAS refuses the product, returns an empty dict and {"cuBLAS":
    reason}."""
    draw = lambda rows, cols: torch.randn(rows, cols, device="cuda", dtype=TYPES[case["dtype"]])
    a = draw(case["k"], case["m"]).T if case["transposes"][0] == "t" else draw(case["m"], case["k"])
    b = draw(case["n"], case["k"]).T if case["transposes"][1] == "t" else draw(case["k"], case["n"])
    out, bias = draw(case["m"], case["n"]), draw(1, case["n"])[0]
    run = (lambda: torch.addmm(bias, a, b, out=out)) if case["epilogue"] == "bias" else (lambda: torch.mm(a, b, out=out))
    try:
        run()
        return {"cuBLAS": run}, {}
    except RuntimeError as error:
        return {}, {"cuBLAS": str(error).strip().splitlines()[0][:200]}


def product(n):
    """Returns a function that multiplies two n x n matrices of bf16 with cuBLAS, and the FLOPs of this product."""
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    return (lambda: torch.mm(a, b, out=out)), 2.0 * n**3


def milliseconds(body, repeats):
    """Returns the mean milliseconds of one call, measured by CUDA events around `repeats` calls."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        body()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeats


def compare_times(bodies, rounds, seconds=0.02):
    """Returns {name: milliseconds in each round}. In a round, each function has a warm-up call and some timed calls, so that changes of the clock rate
    affect all functions."""
    repeats = {}
    for name, body in bodies.items():
        body()
        torch.cuda.synchronize()
        repeats[name] = max(1, min(1000, int(seconds * 1e3 / max(milliseconds(body, 2), 1e-3))))
    times = {name: [] for name in bodies}
    for number in range(rounds):
        order = list(bodies)[number % len(bodies):] + list(bodies)[:number % len(bodies)]
        for name in order:
            bodies[name]()
            times[name].append(milliseconds(bodies[name], repeats[name]))
    return times
