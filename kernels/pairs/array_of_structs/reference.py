"""Mass times velocity squared, charge times position by force, radius times spin squared."""


def reference(inputs):
    position, velocity, force, spin, scalars = inputs["particles"].split(3, dim=1)
    mass, charge, radius = scalars.unbind(dim=1)
    return (
        mass * velocity.square().sum(dim=1)
        + charge * (position * force).sum(dim=1)
        + radius * spin.square().sum(dim=1)
    )
