"""Torch programs on the CPU, run with and without ranges around modules: prints what they compute,
and the ranges, as JSON."""

import functools
import json
import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 16))

    def forward(self, x):
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed)[0]
        return x + self.mlp(x)


class Transformer(nn.Module):
    def __init__(self, kept=False):
        super().__init__()
        self.kept = kept
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.kept else layer(x)
        return self.head(x)


class Tree(nn.Module):
    """Calls itself."""

    def __init__(self):
        super().__init__()
        self.join = nn.Linear(8, 8)

    def forward(self, x, depth=4):
        return x if depth == 0 else self.join(self(x, depth - 1) + self(x, depth - 1)).tanh()


class Failing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, fails, module=0, args=0, kwargs=0):
        x = self.inner(x) + module + args + kwargs
        if fails:
            raise ValueError("of the program")
        return x


class Outer(nn.Module):
    """Goes on where a part of it fails."""

    def __init__(self):
        super().__init__()
        self.part, self.last = Failing(), nn.Linear(4, 4)

    def forward(self, x, fails=True):
        try:
            x = self.part(x, fails=fails, module=1, args=2, kwargs=3)
        except ValueError:
            x = x * 2
        return self.last(x)


class Streaming(nn.Module):
    """Computes when its output is asked for."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(3):
            x = self.step(x)
            yield x


class Forces(nn.Module):
    """Differentiates in its forward."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Linear(4, 1)

    def forward(self, x):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            (forces,) = torch.autograd.grad(self.energy(x).tanh().sum(), x, create_graph=True)
        return forces


def trained(net, steps=7, loss=None):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    loss = loss or nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        output = net(torch.randn(8, 5, 16)).flatten(0, 1)
        value = loss(output, torch.randint(0, 4, (40,)))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, [parameter.double().sum().item() for parameter in net.parameters()]


def transformer():
    return trained(Transformer())


def checkpointed():
    return trained(Transformer(kept=True))


def reentrant():
    net = Transformer()
    x = torch.randn(4, 5, 16, requires_grad=True)
    for layer in net.layers:
        x = checkpoint(layer, x, use_reentrant=True)
    net.head(x).sum().backward()
    return [parameter.grad.sum().item() for parameter in net.parameters()]


def closures():
    """An optimizer that calls the module, a gradient of a gradient, and a failing backward."""

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x * 1

        @staticmethod
        def backward(_, __):
            raise ValueError("of the program")

    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(8, 4)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        (gradient,) = torch.autograd.grad(loss, net[0].weight, create_graph=True)
        loss = loss + gradient.square().sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    for _ in range(3):
        try:
            net(Broken.apply(net[0](x))).sum().backward()
        except ValueError as error:
            losses.append(str(error))
        losses.append(net(x).sum().item())
    return losses


def data_parallel():
    """DistributedDataParallel, of one process."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    result = trained(nn.parallel.DistributedDataParallel(Transformer()))
    torch.distributed.destroy_process_group()
    return result


def recurrent():
    """An outermost module whose part is called more often than ranges are made."""
    cell, head = nn.GRUCell(4, 4), nn.Linear(4, 2)

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = cell, head

        def forward(self, x):
            state = torch.zeros(1, 4)
            for _ in range(1500):
                state = self.cell(x, state)
            return self.head(state)

    loss = Loop()(torch.ones(1, 4)).sum()
    loss.backward()
    return loss.item(), cell.weight_ih.grad.sum().item()


def recursion():
    return Tree()(torch.ones(2, 8)).sum().item()


def exceptions():
    outer, results = Outer(), []
    for _ in range(3):
        results.append(outer(torch.ones(2, 4)).sum().item())
        try:
            outer.part(torch.ones(2, 4), True)
        except ValueError as error:
            results.append(str(error))
    return results


def generators():
    return [x.sum().item() for x in Streaming()(torch.ones(2, 4))]


def inference():
    net = Transformer().eval()
    with torch.inference_mode():
        return [net(torch.ones(1, 5, 16)).sum().item() for _ in range(6)]


def forces():
    net = Forces()
    output = net(torch.ones(3, 4))
    output.sum().backward()
    return output.sum().item(), net.energy.weight.grad.sum().item()


def threads():
    nets, results = [Transformer() for _ in range(3)], {}

    def work(number):
        x = torch.ones(2, 5, 16) * number
        results[number] = [nets[number](x).sum().item() for _ in range(5)]

    running = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return [results[number] for number in range(3)]


def adversaries():
    """Two optimizers, and a module that is called before the training starts."""
    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    for _ in range(20):
        one(torch.ones(1, 4))
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, other)]
    for _ in range(6):
        for optimizer in optimizers:
            other(one(torch.ones(1, 4))).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return one.weight.sum().item(), other.weight.sum().item()


def transforms():
    """vmap and jvp of modules, and a trace."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    parameters = dict(net.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(net, parameters, (x,)).sum()

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.ones(3, 4))
    traced = torch.jit.trace(net, torch.ones(1, 4))
    return [each.sum().item() for each in gradients.values()], traced(torch.ones(1, 4)).tolist()


def compiled():
    """Graphs of what is compiled as a whole, in part, by a decorator, and in place."""
    graphs = []

    def backend(graph, _):
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    def broken(net, x):
        x = net.layers[0](x)
        torch._dynamo.graph_break()
        return net.layers[1](x)

    results = []
    compile_ = functools.partial(torch.compile, backend=backend)
    in_place = Transformer()
    in_place.compile(backend=backend)
    nets = [compile_(Transformer()), in_place]
    function, net = compile_(broken), Transformer()
    nets += [functools.partial(function, net), nn.Sequential(compile_(Block()), nn.Linear(16, 4))]
    for each in nets:
        rows = [each(torch.ones(2, 5, 16)) for _ in range(7)]
        rows[0].sum().backward()
        results.append([row.sum().item() for row in rows])
    return results, graphs


def late():
    """Modules that are first called, or constructed, after many calls of others."""
    first, second = nn.Linear(4, 4), nn.LayerNorm(4)
    x = torch.ones(1, 4)
    for _ in range(40):
        x = first(x)
    x = second(x)
    for _ in range(40):
        x = second(x)
    return nn.PReLU()(x).sum().item()


def repeated():
    """Enough calls of one module that ranges end."""
    net = nn.Sequential(*[nn.Identity() for _ in range(250)], nn.Linear(1, 1))
    for _ in range(200):
        net(torch.ones(1))


def main(names):
    rows = {}
    for name in names:
        torch.manual_seed(0)
        nvtx = getattr(torch._C, "_nvtx", None)
        log = nvtx.log if nvtx else []
        log.clear()
        result = globals()[name]()
        rows[name] = {"result": result, "ranges": list(log)}
    rows["is_restored"] = nn.Module.__call__ is nn.Module._wrapped_call_impl
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
