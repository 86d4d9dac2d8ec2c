"""What the switches do inside the program: functions of it, which profkit itself never calls.

Each takes the program's torch (`TorchProgram`) or jax (`JaxProgram`) when it has been imported, and
reports by `applied` that it has found something to change. `switches.yaml` declares them.
"""
