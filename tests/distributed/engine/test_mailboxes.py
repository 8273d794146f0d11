import os
import threading
from datetime import timedelta

import pytest

import weft
from weft.distributed.engine.mailboxes import Mail
from weft.distributed.engine.peers import Peer
from weft.distributed.engine.segment import MAIL, Segment

TIMEOUT = timedelta(seconds=20)


@pytest.fixture
def mails():
    """The mail of two ranks, both in this process."""
    segment, peers = Segment(2), [Peer(os.getpid())] * 2
    return [Mail(segment, peers, rank) for rank in range(2)]


def send(mail, tensor, tag=0):
    return mail.send(tensor, 1 - mail.rank, tag, TIMEOUT)


def recv(mail, tensor, tag=0, src=...):
    return mail.recv(tensor, 1 - mail.rank if src is ... else src, tag, TIMEOUT)


def test_small_messages_are_sent_at_once(mails):
    first, second = mails
    assert send(first, weft.arange(3.0)).is_done()
    target = weft.zeros(3)
    request = recv(second, target, src=None)
    assert request.is_done() and request.source == 0 and target.tolist() == [0, 1, 2]


def test_tags_are_received_in_any_order(mails):
    first, second = mails
    sent = [send(first, weft.full((2,), tag * 1.0), tag) for tag in (1, 2, 1)]
    found = [weft.zeros(2) for _ in range(3)]
    requests = [recv(second, target, tag) for target, tag in zip(found, (2, 1, 1))]
    # The mailbox had no room for the third message.
    assert all(request.is_done() for request in (*sent, *requests))
    assert [target[0].item() for target in found] == [2, 1, 1]
    assert not second.aside.get(0) and not second.wanted


@pytest.mark.parametrize("asked_first", [True, False])
def test_large_messages_go_in_parcels(mails, asked_first):
    first, second = mails
    sent, target = weft.arange(MAIL).float(), weft.zeros(MAIL)
    request = recv(second, target) if asked_first else None
    sending = send(first, sent)
    assert not sending.is_done()  # it is larger than a mailbox
    thread = threading.Thread(target=sending.wait)
    thread.start()
    (request or recv(second, target)).wait()
    thread.join(20)
    assert sending.is_done() and target.equal(sent)


def test_a_thread_sees_to_messages_that_nobody_waits_for(mails):
    first, second = mails
    sending, target = send(first, weft.ones(MAIL)), weft.zeros(MAIL)
    sending.go_on()
    recv(second, target).wait()
    assert target.sum().item() == MAIL
    first.close()


def test_empty_messages_and_wrong_sizes(mails):
    first, second = mails
    send(first, weft.zeros(0))
    assert recv(second, weft.zeros(0)).is_done()
    send(first, weft.zeros(3))
    with pytest.raises(RuntimeError, match=r"recv from rank 0 .*: rank 0 has sent 12 bytes of torch.float32"):
        recv(second, weft.zeros(2)).wait()
    send(first, weft.zeros(2))
    assert recv(second, weft.zeros(2)).is_done()
