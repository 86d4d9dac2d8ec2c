"""Prices of European calls: with constants in float64, and in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def price(
    spot_ptr, strike_ptr, expiry_ptr, market_ptr, out_ptr, single: tl.constexpr, block: tl.constexpr
):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    spot = tl.load(spot_ptr + offsets) + 0.5
    strike = tl.load(strike_ptr + offsets) + 0.5
    expiry = tl.load(expiry_ptr + offsets) + 0.25
    rate = tl.load(market_ptr)
    volatility = tl.load(market_ptr + 1)
    if single:
        rate = rate.to(tl.float32)
        volatility = volatility.to(tl.float32)
    rate = 0.05 * rate
    volatility = 0.2 + 0.2 * volatility
    spread = volatility * tl.sqrt(expiry)
    d1 = (tl.log(spot / strike) + (rate + 0.5 * volatility * volatility) * expiry) / spread
    d2 = d1 - spread
    likely = 0.5 + 0.5 * tl.erf(d1 * 0.7071067811865476)
    exercised = 0.5 + 0.5 * tl.erf(d2 * 0.7071067811865476)
    result = spot * likely - strike * tl.exp(-rate * expiry) * exercised
    tl.store(out_ptr + offsets, result.to(tl.float32))


def prices(inputs, single):
    spot, strike, expiry, market = (inputs[name] for name in ("spot", "strike", "expiry", "market"))
    out = torch.empty_like(spot)
    price[(spot.numel() // 512,)](
        spot, strike, expiry, market, out, single=single, block=512, num_warps=4
    )
    return out


def before(inputs):
    return prices(inputs, single=False)


def after(inputs):
    return prices(inputs, single=True)
