"""Tests Run: training through the runtime's C interface."""

import pathlib
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import fsdp_mlir as fm
from fsdp_mlir import safetensors, tools


def train(step, batches, **options):
    with step.train(**options) as run:
        losses = [run.step(batch).loss for batch in batches]
        return losses, dict(run.parameters()), run.optimizer_state()


def test_describes_the_artifact(step):
    assert step.ranks == 2 and step.lr == pytest.approx(1e-3)
    assert [(i.name, i.shape) for i in step.inputs] == [("tokens", (2, 16)), ("targets", (2, 16))]
    assert step.parameters[0].name == "wte.weight" and step.parameters[0].shape == (64, 32)
    assert "arena" in step.explain()
    assert "mesh=shard=4" in step.explain(what_if="mesh=shard=4")


def test_steps_are_those_of_the_command(step, batches, tmp_path):
    """Training on one batch in Python and with fsdp-run results in equal bits of all weights."""
    # All samples are equal, so it does not matter which samples fsdp-run draws.
    one = tuple(np.repeat(array[:1], 4, axis=0) for array in batches(2)[0])
    for name, array in zip(("tokens", "targets"), one):
        np.save(tmp_path / f"{name}.npy", array)
    subprocess.run([tools.find_tool("fsdp-run"), step.path, "--seed=3", "--steps=3",
                    "--val-batches=0", f"--input=tokens={tmp_path}/tokens.npy",
                    f"--input=targets={tmp_path}/targets.npy",
                    f"--export={tmp_path}/after.safetensors"], check=True, capture_output=True)
    with step.train(seed=3) as run:
        for _ in range(3):
            run.step(one)
        own = dict(run.parameters())
    other = safetensors.read(tmp_path / "after.safetensors")
    assert sorted(own) == sorted(other)
    assert all(np.array_equal(own[name], other[name]) for name in own)


def test_sharded_is_unsharded(step, batches):
    with step.train(seed=1, check_against_unsharded=True) as run:
        for batch in batches(2):
            run.step(batch)
        run.compare()


def test_two_ranks_train_as_one(step, single, batches):
    two = batches(2)
    losses, _, _ = train(step, two, seed=5)
    assert losses[0] == pytest.approx(np.log(64), abs=0.1)
    with single.train(seed=5) as run:
        first = run.evaluate((two[0][0][:2], two[0][1][:2]))
        second = run.evaluate((two[0][0][2:], two[0][1][2:]))
    assert (first + second) / 2 == pytest.approx(losses[0], rel=1e-6)


def test_learning_rate_and_metrics(step, batches):
    data = batches(2)
    with step.train(seed=2) as run:
        before = dict(run.parameters())
        metrics = run.step(data[0], lr=0.0)
        assert metrics.step == 1 and metrics.lr == 0.0 and metrics.finite
        assert metrics.tokens == 64 and metrics.grad_norm > 0
        after = dict(run.parameters())
        assert all(np.array_equal(before[n], after[n]) for n in before)
        assert run.step(data[0]).lr == 0.0, "a rate stays until another is given"
        run.step(data[0], lr=1e-2)
        assert any(not np.array_equal(before[n], v) for n, v in run.parameters())
        with pytest.raises(fm.BadInputError, match="lr: expected a finite number"):
            run.step(data[0], lr=float("nan"))


def test_evaluate_changes_nothing(step, batches):
    data = batches(2)
    plain, _, _ = train(step, data, seed=4)
    with step.train(seed=4) as run:
        for batch, loss in zip(data, plain):
            assert run.evaluate(batch) == pytest.approx(loss, rel=1e-6)
            assert run.step(batch).loss == loss


def test_weights_come_and_go(step, batches, tmp_path):
    data = batches(2)
    losses, weights, _ = train(step, data, seed=6)
    with step.train(weights=weights) as run:
        assert all(np.array_equal(weights[n], v) for n, v in run.parameters())
        run.export(tmp_path / "w.safetensors")
    with step.train(weights=tmp_path / "w.safetensors") as run:
        assert all(np.array_equal(weights[n], v) for n, v in run.state_dict().items())
        changed = {**weights, "wte.weight": weights["wte.weight"] + 1}
        run.load_state_dict(changed)
        assert np.array_equal(dict(run.parameters())["wte.weight"], changed["wte.weight"])


def test_resumes_the_save_of_another_mesh(step, single, batches, tmp_path):
    losses, weights, states = train(step, batches(2, steps=4), seed=8)
    with step.train(seed=8) as run:
        for batch in batches(2, steps=4):
            run.step(batch)
        run.save(tmp_path / "saves")
    with pytest.warns(UserWarning, match="another artifact, compiled with --mesh=shard=2.*: states "
                                         "are equal element for element"):
        run = single.train(resume=tmp_path / "saves")
    with run:
        assert run.steps == 4
        assert all(np.array_equal(weights[n], v) for n, v in run.parameters())
        own = run.optimizer_state()
        assert own.keys() == states.keys()
        for name, roles in own.items():
            assert roles.keys() == states[name].keys() and len(roles) == 2
            assert all(np.array_equal(states[name][r], v) for r, v in roles.items())
        run.step(batches(1)[0])


def test_save_and_resume_bit_for_bit(step, batches, tmp_path):
    data = batches(2, steps=6)
    losses, weights, states = train(step, data, seed=8)
    with step.train(seed=8) as run:
        for batch in data[:3]:
            run.step(batch)
        assert run.save(tmp_path / "saves").name == "step-00000003"
        run.step(data[3])
        run.save(tmp_path / "saves", keep=2)
    with step.train(resume=tmp_path / "saves" / "step-00000003") as run:
        assert run.steps == 3
        assert [run.step(batch).loss for batch in data[3:]] == losses[3:]
        assert all(np.array_equal(weights[n], v) for n, v in run.parameters())
        for name, roles in run.optimizer_state().items():
            assert all(np.array_equal(states[name][r], v) for r, v in roles.items())
    with step.train(resume=tmp_path / "saves") as run:
        assert run.steps == 4 and run.step(data[4]).loss == losses[4]
        run.save(tmp_path / "saves")
    with step.train() as run:
        with pytest.raises(fm.BadInputError, match="saves of another run"):
            run.save(tmp_path / "saves")


def test_a_resumed_run_keeps_its_rate(step, single, batches, tmp_path):
    data = batches(2, steps=4)
    with step.train(seed=8) as run:
        losses = [run.step(batch, lr=5e-4).loss for batch in data]
    with step.train(seed=8) as run:
        for batch in data[:2]:
            run.step(batch, lr=5e-4)
        run.save(tmp_path / "saves")
    with step.train(resume=tmp_path / "saves") as run:
        metrics = [run.step(batch) for batch in data[2:]]
        assert [m.loss for m in metrics] == losses[2:]
        assert all(m.lr == np.float32(5e-4) for m in metrics)
    with pytest.warns(UserWarning, match="another artifact"):
        run = single.train(resume=tmp_path / "saves")
    with run:
        assert run.step(batches(1)[0]).lr == np.float32(5e-4)
        assert run.step(batches(1)[0], lr=1e-3).lr == 1e-3


def test_save_without_waiting(model, batches, tmp_path):
    step = fm.compile(model, mesh="shard=2", async_save=True, output=tmp_path / "async.fsdp")
    data = batches(2, steps=5)
    with step.train(seed=8) as run:
        for number, batch in enumerate(data):
            run.step(batch)
            run.save(tmp_path / "a", wait=number % 2 == 1)
        weights = dict(run.parameters())
    with step.train(seed=8) as run:
        for batch in data:
            run.step(batch)
            run.save(tmp_path / "b")
    # All saves must exist, because close() has waited for the last of them.
    names = [f"step-0000000{number}" for number in range(1, 6)]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["latest", *names]
    for file in (tmp_path / "b").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "a" / file.relative_to(tmp_path / "b")).read_bytes()
    with step.train(resume=tmp_path / "a") as run:
        assert run.steps == 5
        assert all(np.array_equal(weights[n], v) for n, v in run.parameters())


def test_failed_save_is_raised_by_the_next_step(model, batches, tmp_path):
    step = fm.compile(model, mesh="shard=2", async_save=True, output=tmp_path / "async.fsdp")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    data = batches(2, steps=3)
    try:
        with step.train(seed=8) as run:
            run.step(data[0])
            run.save(tmp_path / "saves")
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
            run.save(tmp_path / "saves", wait=False)
            with pytest.raises(fm.RuntimeFailure, match="step 1 could not be saved.*File too large"):
                for _ in range(10000):
                    run.step(data[1])
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            run.step(data[2])
            assert run.save(tmp_path / "saves", wait=False).name == f"step-{run.steps:08d}"
            run.wait_for_saves()
            assert (tmp_path / "saves" / f"step-{run.steps:08d}").exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_save_without_waiting_needs_memory(step, batches, tmp_path):
    with step.train(seed=8) as run:
        run.step(batches(2)[0])
        with pytest.raises(fm.BadInputError, match="compile with async_save=True"):
            run.save(tmp_path / "saves", wait=False)


@pytest.mark.parametrize("batch, message", [
    (lambda b: (b[0], b[1][:2]), r"'targets': expected the shape \[4, 16\] \(2 batches of"),
    (lambda b: (b[0],), "expected 2 arrays"),
    (lambda b: {"tokens": b[0]}, "lacks the input 'targets'"),
    (lambda b: {"tokens": b[0], "targets": b[1], "x": b[1]}, "no input 'x'"),
    (lambda b: (b[0].astype(np.float32), b[1]), "'tokens': expected i64, found float32"),
    (lambda b: (b[0] + 64, b[1]), "tokens"),
    (lambda b: (b[0], "text"), "'targets'")])
def test_wrong_batches_are_refused(step, batches, batch, message):
    good = batches(2)[0]
    with step.train(seed=1) as run:
        with pytest.raises(fm.BadInputError, match=message):
            run.step(batch(good))
        assert np.isfinite(run.step(good).loss), "the run goes on"


def test_wrong_arguments_are_refused(step, tmp_path):
    with pytest.raises(fm.BadInputError, match="ranks: expected 2"):
        step.train(ranks=3)
    with pytest.raises(fm.BadInputError, match="no parameter 'wte.wait'; did you mean 'wte.weight'"):
        step.train(weights={"wte.wait": np.zeros(3)})
    with pytest.raises(fm.BadInputError, match=r"'wte.weight': expected the shape \[64, 32\]"):
        step.train(weights={"wte.weight": np.zeros((3, 3), np.float32)})
    with pytest.raises(fm.BadInputError, match="no value for the parameter"):
        step.train(weights={})
    with pytest.raises(fm.BadInputError, match="on_nonfinite"):
        step.train(on_nonfinite="stop")
    with pytest.raises(fm.RuntimeFailure):
        step.train(resume=tmp_path / "nothing")
    with pytest.raises(fm.BadInputError):
        step.train(device="tpu")
    with pytest.raises(TypeError):
        step.train(thread=3)


def test_nonfinite_steps_stop_a_run(step, batches):
    data = batches(2)[0]
    with step.train(seed=1) as run:
        weights = dict(run.parameters())
        weights["wte.weight"][:] = np.inf
        run.load_state_dict(weights)
        with pytest.raises(fm.NonFiniteError, match="step 1: loss or gradient norm is not finite"):
            run.step(data)
        with pytest.raises(fm.RuntimeFailure, match="closed|failed"):
            run.step(data)
    with step.train(seed=1, on_nonfinite="skip") as run:
        run.load_state_dict(weights)
        assert not run.step(data).finite


def test_compile_errors_have_diagnostics(model):
    with pytest.raises(fm.CompileError, match="mesh 'sharp=2'") as caught:
        fm.compile(model, mesh="sharp=2")
    with pytest.raises(fm.CompileError, match="Unknown command line argument"):
        fm.compile(model, no_such_option=3)
    with pytest.raises(TypeError, match="given twice"):
        fm.compile(model, optimizer=fm.AdamW(), weight_decay=0.5)
    with pytest.raises(TypeError, match="use Step.report"):
        fm.compile(model, report="x.html")
    broken = fm.Model(model.text.replace("linalg.yield", "linalg.yeild", 1), [], [])
    with pytest.raises(fm.CompileError) as caught:
        fm.compile(broken)
    assert caught.value.diagnostics[0].severity == "error" and caught.value.diagnostics[0].line


def test_micro_batches(model, batches):
    step = fm.compile(model, mesh="shard=2", grad_accum=2)
    assert step.inputs[0].micro_batches == 2 and step.inputs[0].shape == (2, 16)
    tokens = np.concatenate([b[0] for b in batches(2, 2)])
    targets = np.concatenate([b[1] for b in batches(2, 2)])
    with step.train(seed=1, check_against_unsharded=True) as run:
        assert run.step((tokens, targets)).tokens == 128
        with pytest.raises(fm.BadInputError, match=r"expected the shape \[8, 16\]"):
            run.step((tokens[:4], targets[:4]))


def test_sgd_without_moments(model, batches):
    step = fm.compile(model, mesh="shard=2", optimizer=fm.SGD(lr=0.1, momentum=0.9))
    _, _, states = train(step, batches(2), seed=1)
    assert set(states["wte.weight"]) == {"momentum"}


def test_a_process_per_rank(step, tmp_path):
    """Checks that two processes with RANK and WORLD_SIZE compute the same weights as two threads."""
    script = tmp_path / "train.py"
    script.write_text(f"""
import sys, numpy as np, fsdp_mlir as fm
step = fm.Step.load({str(step.path)!r})
random = np.random.default_rng(7)
with step.train(seed=5) as run:
    for _ in range(3):
        text = random.integers(0, 64, (4, 17))
        own = text[2 * run.local_ranks[0]:2 * run.local_ranks[-1] + 2] if run.processes > 1 else text
        loss = run.step((own[:, :-1].copy(), own[:, 1:].copy())).loss
    run.save({str(tmp_path)!r} + "/saves" + sys.argv[1])
    weights = dict(run.parameters())
    if run.is_root:
        print(loss.hex(), sum(float(w.sum()) for w in weights.values()).hex())
""")
    import os

    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(fm.__file__).parents[1])}
    alone = subprocess.run([sys.executable, script, "1"], env=env, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    both = [subprocess.Popen([sys.executable, script, "2"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             env={**env, "RANK": str(rank), "WORLD_SIZE": "2",
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29417",
                                  "FSDP_RUN_JOB_ID": f"test-{os.getpid()}"}) for rank in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0][0] == alone.stdout


def test_overhead_of_a_step(single, batches):
    """Run.step takes less than 100 microseconds more than the compiled program."""
    import time

    batch = batches(1)[0]
    with single.train(seed=1) as run:
        for _ in range(5):
            run.step(batch)
        costs = []
        program = run._library.session_run
        for _ in range(30):
            inside = []

            def timed(*arguments):
                start = time.perf_counter()
                program(*arguments)
                inside.append(time.perf_counter() - start)

            run._library.session_run = timed
            start = time.perf_counter()
            run.step(batch)
            costs.append(time.perf_counter() - start - sum(inside))
            run._library.session_run = program
    assert sorted(costs)[len(costs) // 2] < 100e-6
