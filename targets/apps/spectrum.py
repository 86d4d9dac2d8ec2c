"""A CuPy pipeline: signals are filtered by their spectrum, and their envelope goes to the host.

python targets/apps/spectrum.py --steps 30
"""

from __future__ import annotations

import itertools

import numpy as np
from loop import Program, option_parser, run

options = option_parser(__doc__)
options.add_argument(
    "--results", choices=("in_line", "own_stream"), default="in_line",
    help="to pageable memory, or to pinned memory while the next step runs",
)  # fmt: skip
options.add_argument("--signals", type=int, default=128)
options.add_argument("--length", type=int, default=65536)

BUFFERS = 2  # one is read while the other is written


def build(asked):
    if asked.toy:
        asked.signals, asked.length = 2, 64
    xp = np
    if asked.device == "cuda":
        import cupy as xp
    shape = asked.signals, asked.length
    generator = np.random.default_rng(asked.seed)
    signals = [xp.asarray(generator.standard_normal(shape, np.float32)) for _ in range(2)]
    frequencies = xp.fft.rfftfreq(asked.length).astype(np.float32)
    response = xp.exp(-(((frequencies - 0.1) / 0.02) ** 2)).astype(np.complex64)
    window = xp.hanning(asked.length).astype(np.float32)
    envelopes = [xp.zeros(shape, np.float32) for _ in range(BUFFERS)]
    order = itertools.cycle(signals)

    def filtered(envelope):
        spectrum = xp.fft.rfft(next(order) * window, axis=1)
        power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1, keepdims=True)
        spectrum *= response / xp.sqrt(power)
        result = xp.fft.irfft(spectrum, asked.length, axis=1)
        xp.abs(result, out=envelope, casting="unsafe")

    if asked.device == "cpu":
        return Program(lambda: filtered(envelopes[0]))
    make = in_line if asked.results == "in_line" else behind
    return Program(make(xp, filtered, envelopes), xp.cuda.Device().synchronize)


def in_line(_xp, filtered, envelopes):
    host = np.zeros(envelopes[0].shape, np.float32)

    def step():
        filtered(envelopes[0])
        envelopes[0].get(out=host)
        step.peak = host[0].max()

    return step


def behind(xp, filtered, envelopes):
    """Copy on an own stream, and read the envelope of the step before."""
    aside = xp.cuda.Stream(non_blocking=True)
    hosts = [pinned(xp, envelope) for envelope in envelopes]
    copied = [xp.cuda.Event(disable_timing=True) for _ in envelopes]
    written = xp.cuda.Event(disable_timing=True)
    numbers = itertools.count()

    def step():
        number = next(numbers)
        index = number % len(envelopes)
        main = xp.cuda.get_current_stream()
        main.wait_event(copied[index])
        filtered(envelopes[index])
        written.record(main)
        aside.wait_event(written)
        envelope = envelopes[index]
        envelope.data.copy_to_host_async(hosts[index].ctypes.data, envelope.nbytes, aside)
        copied[index].record(aside)
        before = (number - 1) % len(envelopes)
        copied[before].synchronize()
        step.peak = hosts[before][0].max()

    return step


def pinned(xp, like):
    memory = xp.cuda.alloc_pinned_memory(like.nbytes)
    return np.frombuffer(memory, like.dtype, like.size).reshape(like.shape)


if __name__ == "__main__":
    run("spectrum", options, build, fix=("--results", "own_stream"))
