"""A torch that is imported in no time, for programs of which only the steps count."""

from pathlib import Path

TORCH = """
import random, sys
from types import SimpleNamespace
__version__ = "1"
default_generator = random.Random()
manual_seed = default_generator.seed
def rand():
    return default_generator.random()
def get_rng_state():
    words = default_generator.getstate()[1]
    return SimpleNamespace(tolist=lambda: [word % 256 for word in words])
def is_autocast_enabled(): return False
def is_tensor(value): return False
class Tensor:
    def backward(self): pass
class Module: pass
class Optimizer:
    def __init__(self): self.param_groups = [{"params": []}]
    def zero_grad(self, set_to_none=True): pass
    def step(self):
        for hook in (*before, *after):
            hook(self)
class Iterator:
    def __next__(self): return self._next_data()
    def _next_data(self): raise StopIteration
before, after = [], []
_C = SimpleNamespace()
nn = SimpleNamespace(Module=Module)
autograd = SimpleNamespace(backward=print, grad=print)
cuda = SimpleNamespace(_is_in_bad_fork=lambda: False, is_initialized=lambda: False)
register = SimpleNamespace(
    register_optimizer_step_pre_hook=before.append, register_optimizer_step_post_hook=after.append
)
optim = SimpleNamespace(Optimizer=Optimizer, optimizer=register)
data = SimpleNamespace(dataloader=SimpleNamespace(_BaseDataLoaderIter=Iterator))
sys.modules.update({"torch.optim": optim, "torch.utils.data": data})
"""


def write_torch(folder: Path) -> str:
    """Write it into a folder in this one; the PYTHONPATH to it."""
    made = folder / "imitated"
    made.mkdir()
    (made / "torch.py").write_text(TORCH)
    return str(made)
