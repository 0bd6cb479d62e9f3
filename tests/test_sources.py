"""A kernel's source is read when it is compiled: an edit since the import is seen, nothing else is taken for one."""

import importlib
import textwrap

import pytest

HELPER = """
import cutlass.cute as cute


@cute.jit
def twice(x):
    return x + x
"""
USER = """
import cutlass.cute as cute
{imports}

@cute.kernel
def kernel(mX: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    mX[thread] = twice(mX[thread])


@cute.jit
def host(mX: cute.Tensor, stream):
    kernel(mX).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)
"""

FACTORY = """
import cutlass.cute as cute


def host_of(kernel):
    @cute.jit
    def host(mX: cute.Tensor, stream):
        kernel(mX).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)

    return host
"""

pytestmark = pytest.mark.compile


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Two files with a host function each; the second uses a function of the first."""
    monkeypatch.syspath_prepend(tmp_path)
    helper, user = (f"{role}_{tmp_path.name}" for role in ("helper", "user"))
    (tmp_path / f"{helper}.py").write_text(textwrap.dedent(HELPER + USER.format(imports="")))
    (tmp_path / f"{user}.py").write_text(textwrap.dedent(USER.format(imports=f"from {helper} import twice\n")))
    return importlib.import_module(helper), importlib.import_module(user)


def build(host):
    import torch

    from quack_lite import launch

    return launch.build(host, torch.empty(32))


def edit(module, before, after):
    with open(module.__file__) as file:
        text = file.read()
    with open(module.__file__, "w") as file:
        file.write(text.replace(before, after))


def test_a_function_that_another_file_has_used_is_not_taken_for_an_edited_one(modules):
    helper, user = modules
    assert "st.global" in build(user.host).ptx
    assert "st.global" in build(helper.host).ptx


def test_a_kernel_that_another_files_host_encloses_is_not_taken_for_an_edited_one(modules, tmp_path):
    helper, _ = modules
    (tmp_path / f"factory_{tmp_path.name}.py").write_text(FACTORY)
    build(importlib.import_module(f"factory_{tmp_path.name}").host_of(helper.kernel))
    build(helper.host)


def test_an_edit_of_the_file_is_seen(modules):
    _, user = modules
    edit(user, "(32, 1, 1)", "(64, 1, 1)")
    with pytest.raises(RuntimeError, match="user_.* was edited after host was imported.* restart Python"):
        build(user.host)


def test_an_edit_of_a_file_that_it_uses_is_seen(modules):
    helper, user = modules
    edit(helper, "return x + x", "return x + x + x")
    with pytest.raises(RuntimeError, match="helper_.* was edited after twice was imported"):
        build(user.host)
