"""The libraries of the lab's Python side: imported when they are used, so that stele itself needs none of them."""

import importlib

_packages = {"pandas": ("pandas", "python3-pandas"), "distributed": ("'dask[distributed]'", "python3-distributed"),
             "matplotlib": ("matplotlib", "python3-matplotlib")}


def library(name, what):
    """The module `name`, which `what` needs; raises ImportError with a sentence that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        name = name.split(".")[0]
        pip, debian = _packages[name]
        raise ImportError(f"{what} needs {name}: pip install {pip} (Debian: {debian}); stele[lab] has all that the lab needs") from e
