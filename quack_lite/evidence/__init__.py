"""What was seen of a kernel on a GPU, written down so that a machine without one can tell whether it still holds."""
