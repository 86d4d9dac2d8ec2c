"""x weight^T + residual."""


def reference(inputs):
    return inputs["x"] @ inputs["weight"].T + inputs["residual"]
