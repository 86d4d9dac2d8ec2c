import torch


def reference(inputs):
    image, weights = inputs["image"], inputs["weights"]
    return torch.nn.functional.conv2d(image[None], weights[None])[0, 0]
