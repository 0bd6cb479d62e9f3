"""Mistakes that people make in exercise 14, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

NORM = "use_it_in_torch.norm"
LOSS = "use_it_in_torch.loss"
MODEL = "use_it_in_torch.model"

FAKE_NORM = "    return x.new_empty(x.shape)\n"
SWAPPED_NORM = "qk_norm(x.flatten(0, 1), w).view(x.shape)"
ON_DEFAULT = "with torch.cuda.stream(torch.cuda.default_stream()):"

WRONG_ANSWERS = (
    WrongAnswer(
        NORM,
        "a fake that keeps the strides",
        ((FAKE_NORM, "    return torch.empty_like(x)\n"),),
        gate="fake",
        sentence="results are contiguous, whatever x is",
        easy="right where x is contiguous",
    ),
    WrongAnswer(
        NORM,
        "a fake in float32",
        ((FAKE_NORM, "    return x.new_empty(x.shape, dtype=torch.float32)\n"),),
        gate="fake",
        sentence="should be torch.bfloat16",
        easy="right where x is float32",
    ),
    WrongAnswer(
        NORM,
        "no fake",
        (('torch.library.register_fake("mine::qk_norm", fake_norm, lib=norm_library)\n', ""),),
        gate="fake",
        sentence="it has no fake",
        easy="right where nobody compiles",
    ),
    WrongAnswer(
        NORM,
        "a gradient without eps",
        (
            (
                "rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)",
                "rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True))",
            ),
        ),
        gate="gradient",
        sentence="near 0: the gradient of input 0",
        easy="right where squares are larger than eps",
    ),
    WrongAnswer(
        NORM,
        "no gradient",
        (
            (
                'torch.library.register_autograd("mine::qk_norm", norm_backward, setup_context=save_norm, '
                "lib=norm_library)\n",
                "",
            ),
        ),
        gate="opcheck",
        sentence="was not told its gradient",
        easy="right where nobody trains",
    ),
    WrongAnswer(
        NORM,
        "one gradient for two inputs",
        (("return dx.to(x.dtype), (dy.float() * unit).sum((0, 1))", "return dx.to(x.dtype)"),),
        gate="opcheck",
        sentence="one gradient for each input",
        easy="right for an operator of one input",
    ),
    WrongAnswer(
        NORM,
        "the one forgotten in the gradient",
        (("dy.float() * (1 + w)", "dy.float() * w"),),
        gate="gradient",
        sentence="the gradient of input 0",
        easy="passes opcheck, which compares only one way of calling it with another",
    ),
    WrongAnswer(
        NORM,
        "rstd taken for a constant",
        (("rstd * (g - unit * (g * unit).mean(-1, keepdim=True))", "rstd * g"),),
        gate="gradient",
        sentence="the gradient of input 0",
        easy="right where the gradient is orthogonal to x",
    ),
    WrongAnswer(
        NORM,
        "the weight's gradient as a mean",
        ((".sum((0, 1))", ".mean((0, 1))"),),
        gate="gradient",
        sentence="the gradient of input 1",
        easy="right for one head of one token",
    ),
    WrongAnswer(
        NORM,
        "a result that keeps the strides",
        (("y = x.new_empty(x.shape)", "y = torch.empty_like(x)"),),
        gate="values",
        sentence="and its fake says contiguous",
        easy="right values, and right where x is contiguous",
    ),
    WrongAnswer(
        NORM,
        "always on the default stream",
        (("    norm_kernel()(x, w, y)", f"    {ON_DEFAULT}\n        norm_kernel()(x, w, y)"),),
        gate="stream",
        sentence="did not wait for its input",
        easy="right on the default stream",
    ),
    WrongAnswer(
        LOSS,
        "one z for all calls in the gradient",
        (("(1 + 2 * ctx.z * lse)", "(1 + 2 * 0.01 * lse)"),),
        gate="gradient",
        sentence="the gradient of input 0",
        easy="right for one z",
    ),
    WrongAnswer(
        LOSS,
        "a fake in bfloat16",
        (
            (
                "return x.new_empty(len(x), dtype=torch.float32), x.new_empty(len(x), dtype=torch.float32)",
                "return x.new_empty(len(x)), x.new_empty(len(x))",
            ),
        ),
        gate="fake",
        sentence="should be torch.float32",
        easy="right for logits in float32",
    ),
    WrongAnswer(
        LOSS,
        "a fake with both results in one tensor",
        (
            (
                "return x.new_empty(len(x), dtype=torch.float32), x.new_empty(len(x), dtype=torch.float32)",
                "return x.new_empty((len(x), 2), dtype=torch.float32).unbind(1)",
            ),
        ),
        gate="fake",
        sentence="results are contiguous",
        easy="the right shapes",
    ),
    WrongAnswer(
        LOSS,
        "the entropy pretends to have a gradient",
        (("    ctx.mark_non_differentiable(output[1])\n", ""),),
        gate="gradient",
        sentence="pretends to have a gradient",
        easy="right for the losses",
    ),
    WrongAnswer(
        LOSS,
        "the derivative of the square",
        (("1 + 2 * ctx.z * lse", "1 + ctx.z * lse"),),
        gate="gradient",
        sentence="the gradient of input 0",
        easy="right for z = 0",
    ),
    WrongAnswer(
        LOSS,
        "ignored rows have a gradient",
        (("torch.where((target == -100)[:, None], 0.0, dx * dloss[:, None])", "dx * dloss[:, None]"),),
        gate="gradient",
        sentence="the gradient of input 0",
        easy="right where every label counts",
    ),
    WrongAnswer(
        LOSS,
        "two columns of one tensor",
        (("return out[:, 0].contiguous(), out[:, 1].contiguous()", "return out.unbind(1)"),),
        gate="values",
        sentence="and its fake says contiguous",
        easy="the right values",
    ),
    WrongAnswer(
        MODEL,
        "the norm left as it was",
        ((f"    model.norm = lambda x, w: {SWAPPED_NORM}\n", ""),),
        gate="forward",
        sentence="calls of your operators in the forward: 1 (mine::zloss)",
        easy="the same loss",
    ),
    WrongAnswer(
        MODEL,
        "batch and length not flattened",
        ((SWAPPED_NORM, "qk_norm(x, w)"),),
        gate="forward",
        sentence="too many values to unpack (expected 3",
        easy="right for the specification of a norm, which asks for the last dimension only",
    ),
    WrongAnswer(
        MODEL,
        "the sum of the losses",
        (("1e-4)[0].mean()", "1e-4)[0].sum()"),),
        gate="forward",
        sentence="see what is added up",
        easy="right for one token",
    ),
    WrongAnswer(
        MODEL,
        "a loss for each token",
        (("1e-4)[0].mean()", "1e-4)[0]"),),
        gate="forward",
        sentence="the model's loss is one number",
        easy="right numbers",
    ),
    WrongAnswer(
        MODEL,
        "losses and entropies",
        (("1e-4)[0].mean()", "1e-4)"),),
        gate="forward",
        sentence="the loss is a tuple",
        easy="the right numbers are among them",
    ),
    WrongAnswer(
        MODEL,
        "another z",
        (("1e-4)[0].mean()", "0.0)[0].mean()"),),
        gate="forward",
        sentence="see what is added up",
        easy="nearly the same loss",
    ),
    WrongAnswer(
        MODEL,
        "detached on the way",
        ((SWAPPED_NORM, "qk_norm(x.flatten(0, 1).detach(), w).view(x.shape)"),),
        gate="forward",
        sentence="away from torch's",
        easy="the same loss",
    ),
    WrongAnswer(
        MODEL,
        "a look at the values",
        ((SWAPPED_NORM, "qk_norm(x.flatten(0, 1), w if w.isfinite().all() else 0 * w).view(x.shape)"),),
        gate="graph",
        sentence="cannot take the forward as a whole",
        easy="right values and gradients",
    ),
)
