"""What TorchScript remembers of the modules that it has compiled. It compiles none, so there is nothing to remember."""


class ConcreteTypeStore:
    """The types of compiled modules: none."""

    def __init__(self) -> None:
        self.type_store: dict[type, list] = {}
        self.methods_compiled: set = set()


concrete_type_store = ConcreteTypeStore()
