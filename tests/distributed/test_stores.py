import datetime
import os
import socketserver
import threading

import pytest
import torch
import torch.distributed
from one_rank import same

import weft

SHORT = datetime.timedelta(milliseconds=30)


def stores(library, tmp_path):
    dist = library.distributed
    return {
        "HashStore": lambda: dist.HashStore(),
        "FileStore": lambda: dist.FileStore(f"{tmp_path}/{library.__name__}", 1),
        "PrefixStore": lambda: dist.PrefixStore("a", dist.HashStore()),
        "TCPStore": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
    }


def use(store):
    store.set("a", "b")
    store.set("b", b"\0")
    return [
        store.get("a"),
        store.get("b"),
        store.add("n", 2),
        store.add("n", 3),
        store.get("n"),
        store.check(["a", "n"]),
        store.check(["a", "q"]),
        store.compare_set("c", "", "new"),
        store.compare_set("c", "x", "y"),
        store.compare_set("c", "new", "z"),
        store.compare_set("missing", "a", "b"),
        store.delete_key("a"),
        store.delete_key("a"),
        store.check(["a"]),
        store.wait(["b"]),
        store.timeout,
    ]


@pytest.mark.parametrize("name", ["HashStore", "FileStore", "PrefixStore", "TCPStore"])
def test_stores_as_in_pytorch(name, tmp_path):
    same(lambda library: use(stores(library, tmp_path)[name]()))


@pytest.mark.parametrize("name", ["HashStore", "PrefixStore", "TCPStore"])
def test_queues_and_lists(name, tmp_path):
    def program(library):
        store = stores(library, tmp_path)[name]()
        store.multi_set(["k", "l"], ["1", "2"])
        store.append("k", "x")
        store.queue_push("q", "1")
        store.queue_push("q", "2")
        return (
            store.multi_get(["k", "l"]),
            store.queue_len("q"),
            store.queue_pop("q"),
            store.queue_pop("q"),
            sorted(store.list_keys()),
            store.has_extended_api(),
        )

    same(program)


@pytest.mark.parametrize("name", ["HashStore", "FileStore", "TCPStore"])
def test_missing_keys_time_out(name, tmp_path):
    store = stores(weft, tmp_path)[name]()
    store.set_timeout(SHORT)
    with pytest.raises(weft.distributed.DistStoreError):
        store.get("missing")
    with pytest.raises(weft.distributed.DistStoreError):
        store.wait(["missing"], SHORT)


def test_empty_queue():
    with pytest.raises(weft.distributed.QueueEmptyError):
        weft.distributed.HashStore().queue_pop("q", False)


def test_values_have_to_be_text_or_bytes():
    same(lambda library: library.distributed.HashStore().set("a", 3))


def test_waiting_ends_when_another_thread_sets_the_key():
    store = weft.distributed.HashStore()
    threading.Timer(0.02, store.set, ("a", "b")).start()
    assert store.get("a") == b"b"


def test_file_store_shares_pytorchs_file(tmp_path):
    path = f"{tmp_path}/store"
    theirs = torch.distributed.FileStore(path, 2)
    theirs.set("a", "b")
    ours = weft.distributed.FileStore(path, 2)
    assert ours.get("a") == b"b" and ours.add("n", 3) == 3
    assert theirs.get("n") == b"3" and theirs.add("n", 1) == 4
    assert ours.delete_key("a") and not theirs.check(["a"])


def test_last_file_store_removes_the_file(tmp_path):
    path = f"{tmp_path}/store"
    store = weft.distributed.FileStore(path, 1)
    assert os.path.exists(path)
    other = weft.distributed.FileStore(path, 1)
    del store
    assert os.path.exists(path)
    del other
    assert not os.path.exists(path)


def test_prefixes_end_with_a_slash():
    def program(library):
        store = library.distributed.HashStore()
        library.distributed.PrefixStore("model", store).set("epoch", "3")
        return store.check(["model/epoch"]), store.check(["modelepoch"])

    same(program)


def test_tcp_store_of_several_clients():
    store = weft.distributed.TCPStore("127.0.0.1", 0, 1, True)
    other = weft.distributed.TCPStore("127.0.0.1", store.port)
    other.set("a", "b")
    assert store.get("a") == b"b" and (store.host, store.num_keys() >= 1) == ("127.0.0.1", True)
    store.barrier("x", 1, datetime.timedelta(seconds=1))
    with pytest.raises(ValueError):
        other.add("a", 1)


def test_only_the_process_that_keeps_the_store_waits_for_the_others():
    def program(library):
        distributed, second = library.distributed, datetime.timedelta(seconds=1)
        with pytest.raises(
            distributed.DistStoreError, match=r"seconds waiting for clients. 1/2 clients joined"
        ):
            distributed.TCPStore("127.0.0.1", 0, 2, True, timeout=second)
        keeper = distributed.TCPStore("127.0.0.1", 0, 3, True, wait_for_workers=False)
        client = distributed.TCPStore("127.0.0.1", keeper.port, 3)
        with pytest.raises(
            distributed.DistNetworkError, match=f"any local network address. port: {keeper.port}"
        ):
            distributed.TCPStore("127.0.0.1", keeper.port, 3, True)
        return client.num_keys(), keeper.list_keys()

    same(program)


def test_nobody_listens():
    with pytest.raises(weft.distributed.DistNetworkError, match="timed out"):
        weft.distributed.TCPStore("127.0.0.1", 1, 1, False, timeout=SHORT)


def test_something_else_listens():
    class Other(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(weft.distributed.DistStoreError, match="is no TCPStore of weft .*HTTP/1.1 400"):
            weft.distributed.TCPStore("127.0.0.1", server.server_address[1], 1)


def test_a_program_ends_that_still_has_a_store(run):
    """A thread that is started while the interpreter ends would never run."""
    program = "import weft.distributed as d; store = d.TCPStore('127.0.0.1', 0, 1, True); store.set('a', '1'); print(store.get('a'))"
    done = run("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "b'1'\n", "")
