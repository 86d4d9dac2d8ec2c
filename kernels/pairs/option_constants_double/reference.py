"""The Black-Scholes price of a call."""

import torch


def reference(inputs):
    spot, strike, expiry = inputs["spot"] + 0.5, inputs["strike"] + 0.5, inputs["expiry"] + 0.25
    rate, volatility = 0.05 * inputs["market"][0], 0.2 + 0.2 * inputs["market"][1]
    spread = volatility * expiry.sqrt()
    d1 = ((spot / strike).log() + (rate + 0.5 * volatility**2) * expiry) / spread
    likely, exercised = torch.special.ndtr(d1), torch.special.ndtr(d1 - spread)
    return spot * likely - strike * (-rate * expiry).exp() * exercised
