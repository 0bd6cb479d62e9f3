"""The finished kernels, one file an operator: formula, kernel, host function."""
