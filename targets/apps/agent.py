"""A reinforcement-learning loop: pendulums that numpy moves on the host, a policy on the GPU.

    python targets/apps/agent.py --steps 30

`--move` is when the host moves the pendulums: "first", and training is launched after that, or
"during" training, which needs nothing of it.
"""

from __future__ import annotations

import numpy as np
import torch
from loop import Program, nothing, option_parser, run
from torch import nn
from torch.nn import functional

options = option_parser(__doc__)
options.add_argument("--move", choices=("first", "during"), default="first")
options.add_argument("--pendulums", type=int, default=16384)
options.add_argument("--substeps", type=int, default=16, help="of a move")
options.add_argument("--batch", type=int, default=16384)
options.add_argument("--width", type=int, default=2048)
options.add_argument("--depth", type=int, default=4)
options.add_argument("--memory", type=int, default=16, help="in moves of all pendulums")


class Pendulums:
    """Pendulums that a torque moves; those that turned over start again."""

    def __init__(self, number, substeps, seed):
        self.generator = np.random.default_rng(seed)
        self.angle, self.speed = (np.zeros(number, np.float32) for _ in range(2))
        self.substeps = substeps
        self.begin(np.ones(number, bool))

    def begin(self, which):
        drawn = self.generator.uniform(-0.1, 0.1, (2, int(which.sum()))).astype(np.float32)
        self.angle[which], self.speed[which] = drawn

    def move(self, torque, seen):
        """Move all of them, and write what is seen: sine, cosine, speed and reward."""
        for _ in range(self.substeps):
            change = 9.8 * np.sin(self.angle) + torque * np.cos(self.angle) - 0.1 * self.speed
            self.speed += np.float32(0.01) * change
            self.angle += np.float32(0.01) * self.speed
        self.begin(np.abs(self.angle) > np.pi)
        seen[:, 0], seen[:, 1] = np.sin(self.angle), np.cos(self.angle)
        seen[:, 2] = self.speed
        seen[:, 3] = seen[:, 1] - 0.01 * torque * torque


def network(given, width, depth):
    layers = [nn.Linear(given, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def build(asked):
    if asked.toy:
        asked.pendulums, asked.batch, asked.width, asked.substeps = 8, 4, 8, 2
    torch.manual_seed(asked.seed)
    on_gpu = asked.device == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    policy = network(3, asked.width // 8, 2).to(asked.device, dtype).requires_grad_(False)
    value = network(4, asked.width, asked.depth).to(asked.device, dtype)
    optimizer = torch.optim.Adam(value.parameters(), lr=1e-4, fused=on_gpu)
    pendulums = Pendulums(asked.pendulums, asked.substeps, asked.seed)
    torques = torch.zeros(asked.pendulums, pin_memory=on_gpu)
    seen = torch.zeros(asked.pendulums, 4, pin_memory=on_gpu)
    memory = torch.zeros(asked.memory, asked.pendulums, 5, device=asked.device)
    acted = torch.cuda.Event() if on_gpu else None
    state = {"seen": seen.to(asked.device), "place": 0}

    def act():
        chosen = policy(state["seen"][:, :3].to(dtype)).tanh().float().flatten()
        torques.copy_(chosen, non_blocking=True)
        if acted:
            acted.record()
        return chosen

    def move(chosen):
        if acted:
            acted.synchronize()
        pendulums.move(torques.numpy(), seen.numpy())
        state["seen"] = seen.to(asked.device, non_blocking=True)
        memory[state["place"], :, :4] = state["seen"]
        memory[state["place"], :, 4] = chosen
        state["place"] = (state["place"] + 1) % asked.memory

    def train():
        rows = torch.randint(asked.memory * asked.pendulums, (asked.batch,), device=asked.device)
        batch = memory.view(-1, 5).index_select(0, rows).to(dtype)
        optimizer.zero_grad(set_to_none=True)
        guess = value(torch.cat([batch[:, :3], batch[:, 4:]], 1))
        functional.mse_loss(guess.flatten(), batch[:, 3]).backward()
        optimizer.step()

    def step():
        chosen = act()
        if asked.move == "first":
            move(chosen)
            train()
        else:
            train()
            move(chosen)

    return Program(step, torch.cuda.synchronize if on_gpu else nothing)


if __name__ == "__main__":
    run("agent", options, build, fix=("--move", "during"))
