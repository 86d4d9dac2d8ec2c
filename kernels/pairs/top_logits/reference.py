def reference(inputs):
    return inputs["logits"].topk(64, dim=1).values
