"""Phrasings of papers and posts: what follows is found, and what only sounds alike is left."""

from __future__ import annotations

import pytest

from tests.audit.test_claim_sentences import contradicted


@pytest.mark.parametrize(
    "text",
    [
        "A 13B model in FP16 decodes at 95 tokens/s at batch 1 on an A100 80GB SXM, since each "
        "token reads all 26 GB of weights.",
        "Twice as fast: 6.4 ms before, 4.3 ms after.",
        "We train on 4x H100 SXM at 1.9 PFLOP/s in bf16, 62% MFU.",
        "An 8192x8192x8192 FP16 GEMM finishes in 0.9 ms on an H100 SXM.",
        "fp32 AXPY does 2 FLOP per 12 bytes, so it is compute-bound on an A100.",
        "A 2048-token prompt is prefilled in 85 ms, i.e. 31,000 tokens/s.",
        "LayerNorm at 2 FLOP per byte is compute-bound on a V100 in FP32.",
    ],
)
def test_a_wrong_figure_is_found_however_it_is_phrased(text: str) -> None:
    assert contradicted(text)


@pytest.mark.parametrize(
    "text",
    [
        "The V100 SXM2 peaks at 125 TFLOP/s on its tensor cores and at 15.7 TFLOP/s in FP32.",
        "A B200 peaks at 2.25 PFLOPS in FP16, 4.5 PFLOPS in FP8.",
        "The H100 SXM does 989 TFLOPS dense and 67 TFLOPS in FP32.",
        "With a 2048-token prompt, decoding takes 20 ms per token, 50 tokens/s.",
        "A prompt of 2048 tokens has 85 ms to the first token and then decodes at 40 tokens/s.",
        "At 50 FLOP/B it would need 8x the reuse to become compute-bound on an H100 SXM.",
        "LayerNorm at 2 FLOP per byte won't be compute-bound on any H100 SXM.",
        "1,850 tokens/s with a batch of 32, i.e. 57.8 tokens/s per sequence.",
        "Twice as fast: what took 6.4 ms now takes 3.3 ms.",
        "An HBM twice as fast would cut the time from 4.0 ms to 3.5 ms.",
        "412 ms, of which attention is 103 ms, 10% less than last week.",
        "Launching 264 blocks at one block per SM on an H100 SXM takes exactly two waves.",
    ],
)
def test_a_true_sentence_that_sounds_alike_is_left(text: str) -> None:
    assert not contradicted(text)


@pytest.mark.parametrize(
    "text",
    [
        "The RTX 4090 D has 114 SMs and reaches 70 TFLOPS in FP32.",
        "The RTX 2080 Ti Founders Edition peaks at 14.2 TFLOPS in FP32.",
        "The H100 SXM peaks at 60 TFLOPS in FP32.",
        "A B200 has an FP32 peak of 80 TFLOP/s.",
        "Our SGEMM reaches 88 TFLOPS in FP32 on an RTX 4090.",
    ],
)
def test_another_product_an_older_document_or_a_higher_card_clock_is_no_error(text: str) -> None:
    assert not contradicted(text)


def test_a_card_clock_leaves_no_room_for_twice_the_peak() -> None:
    assert contradicted("Our SGEMM reaches 165 TFLOPS in FP32 on an RTX 4090.")
