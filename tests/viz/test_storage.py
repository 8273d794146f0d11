import pytest
from picture_texts import elements, styles, texts

import weft as torch


def test_metadata_arrows_and_values():
    x = torch.arange(12.0).reshape(3, 4)
    shown = texts(torch.viz.storage(points=x, column=x[:, 2]))
    assert shown[:2] == ["One storage of 48 bytes on cpu", "2 tensors"]
    assert shown[2:26:2] == [str(k) for k in range(12)]
    assert shown[3:26:2] == [f"{k}." for k in range(12)]
    assert "size (3,) \u2003stride (4,) \u2003offset 2 \u2003float32" in shown
    assert [each for each in shown if each.startswith(("stride[", "offset ="))] == [
        *("stride[0] = 4", "stride[1] = 1"),
        *("stride[0] = 4", "offset = 2"),
    ]
    assert shown[-4:-1] == ["2.", "6.", "10."]


def test_elements_that_several_tensors_read_have_a_colour_of_their_own():
    x = torch.arange(4)
    picture = torch.viz.storage(x[:3], x[1:2])
    cells = styles(picture)[1:5]
    assert cells == ["b1 pale", "b0 pale", "b1 pale", "b7 paler"]
    assert texts(picture)[-1] == "elements that several of these tensors read"
    assert "elements that several" not in str(torch.viz.storage(x[:2], x[2:]))


def test_an_element_of_a_wide_dtype_covers_several_cells():
    x = torch.tensor([1, 258], dtype=torch.int16)
    shown = texts(torch.viz.storage(numbers=x, bytes=x.view(torch.uint8)))
    assert shown[3:10:2] == ["1", "0", "2", "1"]
    numbers = shown.index("numbers")
    assert shown[numbers + 1 : numbers + 5] == [
        "size (2,) \u2003stride (1,) \u2003offset 0 \u2003int16",
        *("stride[0] = 1", "1", "258"),
    ]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.zeros(100, 30), "… 92 more rows"),
        (lambda: torch.zeros(100, 30), "… 2,974 more"),
        (lambda: torch.zeros(20, 2, 2), "… 8 more matrices"),
        (lambda: torch.zeros(5, 0), "no elements: one of the sizes is 0"),
        (lambda: torch.zeros(1000)[900:902], "899 …"),
        (lambda: torch.ones(2, device="meta"), "One storage of 8 bytes on meta"),
        (lambda: torch.tensor(7), "size () \u2003stride () \u2003offset 0 \u2003int64"),
        (lambda: torch.tensor([1 + 2j]), "1+2j"),
        (lambda: torch.tensor([1.5], dtype=torch.bfloat16, requires_grad=True), "1.5"),
    ],
)
def test_long_empty_and_other_tensors(make, expected):
    assert expected in texts(torch.viz.storage(make()))


def test_several_storages_and_many_tensors():
    shown = texts(torch.viz.storage(*[torch.zeros(2) for _ in range(10)]))
    assert shown[:2] == ["8 storages", "10 tensors"]
    assert shown.count("Storage of 8 bytes on cpu") == 8
    assert shown[-1] == "… 2 more tensors"


def test_an_expanded_tensor_reads_an_element_many_times():
    big = torch.zeros(1).expand(10**6, 10**6)
    picture = torch.viz.storage(big)
    assert "… 999,992 more rows" in texts(picture)
    assert len(elements(picture, "rect")) < 1000


def test_overlapping_windows_of_one_tensor_are_not_shared():
    picture = torch.viz.storage(torch.arange(6).as_strided((3, 4), (1, 1)))
    assert "elements that several" not in str(picture)


def test_mistakes():
    with pytest.raises(TypeError, match=r"storage\(\) draws tensors, but was given list: use torch.tensor"):
        torch.viz.storage([1, 2])
    with pytest.raises(TypeError, match="none was given"):
        torch.viz.storage()
    with pytest.raises(
        NotImplementedError, match=r"storage\(\) does not draw sparse tensors: write x.to_dense\(\)"
    ):
        torch.viz.storage(torch.eye(2).to_sparse())
