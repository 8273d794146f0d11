# module torch.numa: weft binds no processes to the memory of one socket

# module torch.numa.binding: weft binds no processes to the memory of one socket
class AffinityMode(Enum):
    NODE = 'node'
    SOCKET = 'socket'
    EXCLUSIVE = 'exclusive'
    CORE_COMPLEX = 'core-complex'
@dataclass(frozen=True)
class NumaOptions:
    affinity_mode: object
    should_fall_back_if_binding_fails: object = False
