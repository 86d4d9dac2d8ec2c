"""(x - mean) times the inverse deviation, for each time step."""


def reference(inputs):
    return (inputs["x"] - inputs["means"]) * inputs["inverses"]
