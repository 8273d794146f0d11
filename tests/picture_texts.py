"""What a picture of weft.viz shows."""

import xml.etree.ElementTree as ElementTree


def texts(picture):
    """The texts of a picture, in the order in which they were drawn."""
    return [each.text for each in elements(picture, "text")]


def elements(picture, tag):
    root = ElementTree.fromstring(str(picture))
    return list(root.iter("{http://www.w3.org/2000/svg}" + tag))


def styles(picture, tag="rect"):
    """The classes of the elements with a tag."""
    return [each.get("class", "") for each in elements(picture, tag)]
