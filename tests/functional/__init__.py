"""The public functions on a GPU: values and layouts of all, then what is special about each."""
