"""Black-Scholes prices of calls, the mean over four volatilities."""

import torch

RATE = 0.02


def reference(inputs):
    spot = 50.0 + 100.0 * inputs["spots"]
    strike = 50.0 + 100.0 * inputs["strikes"]
    time = 0.25 + 2.0 * inputs["years"]
    total = torch.zeros_like(spot)
    for scenario in range(4):
        volatility = 0.15 + 0.1 * scenario
        spread = volatility * time.sqrt()
        drift = (RATE + 0.5 * volatility**2) * time
        d1 = ((spot / strike).log() + drift) / spread
        discounted = strike * (-RATE * time).exp()
        normal_cdf = torch.special.ndtr
        total += spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread)
    return total / 4
