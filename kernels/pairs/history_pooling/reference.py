"""The mean of each user's 64 rows of the table."""

from torch.nn.functional import embedding_bag


def reference(inputs):
    return embedding_bag(inputs["items"].long(), inputs["table"], mode="mean")
