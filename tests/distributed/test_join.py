from one_rank import groups, same


def joined(library, enable=True, fail=False):
    """What a Joinable is told, in order."""
    dist = library.distributed
    log = []

    class Hook(dist.algorithms.JoinHook):
        def main_hook(self):
            log.append("main")

        def post_hook(self, is_last_joiner):
            log.append(("post", is_last_joiner))

    class Counter(dist.algorithms.Joinable):
        def __init__(self):
            super().__init__()
            log.append(self._join_config)

        def join_hook(self, **kwargs):
            log.append(kwargs)
            return Hook()

        @property
        def join_device(self):
            return library.device("cpu")

        @property
        def join_process_group(self):
            return dist.group.WORLD

    counter = Counter()
    try:
        with dist.algorithms.Join([counter, Counter()], enable=enable, option=1):
            log.append(counter._join_config)
            log.append(dist.algorithms.Join.notify_join_context(counter) is None)
            if fail:
                raise KeyError
    except KeyError:
        log.append("failed")
    return log


def test_join_as_in_pytorch():
    with groups():
        same(joined)
        same(lambda library: joined(library, enable=False))
        same(lambda library: joined(library, fail=True))
        same(lambda library: library.distributed.algorithms.Join([]))


def test_joinable_is_abstract():
    same(lambda library: type("Empty", (library.distributed.algorithms.Joinable,), {})())
