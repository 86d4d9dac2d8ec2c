"""The convolution of the signal with each response up to its length."""

import torch


def reference(inputs):
    signal, response, lengths = inputs["signal"], inputs["response"], inputs["lengths"]
    longest = response.shape[1]
    samples = len(signal) - longest
    taps = torch.arange(longest, device=signal.device)
    cut = torch.where(taps < lengths[:, None], response, 0.0)
    times = torch.arange(samples, device=signal.device)
    past = signal[longest + times[None, :] - taps[:, None]]
    return cut @ past
