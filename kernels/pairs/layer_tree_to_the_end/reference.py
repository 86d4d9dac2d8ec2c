def reference(inputs):
    return (inputs["weights"] @ inputs["input"]).sigmoid()
