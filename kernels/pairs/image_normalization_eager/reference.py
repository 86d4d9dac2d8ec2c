"""(image / 255 - mean) / deviation, with the channels first."""


def reference(inputs):
    x = inputs["image"].permute(0, 3, 1, 2).double().contiguous()
    mean, scale = (inputs[name][:, None, None] for name in ("mean", "inverse_deviation"))
    return x.div_(255).sub_(mean).mul_(scale)
