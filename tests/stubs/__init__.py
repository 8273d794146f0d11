"""Writes the stubs of weft, the .pyi files that tell type checkers and editors the names that weft sets at run time.

`make stubs` writes them. tests/test_types.py makes them again in memory and compares.

    forms         a signature, as text
    annotations   types as stubs write them
    schemas       the forms of an operator, from its schemas
    signatures    the forms of a public function: its signature at run time, completed from the schemas
    by_hand       forms that neither of the two says
    homes         the files that define functions and classes
    namespaces    the stubs of modules with functions: weft, weft.linalg, weft.nn.functional
    methods       the stub with the methods of Tensor
    results       the stub of weft.return_types
    packages      the stubs of packages that only import
    served        the stubs of modules whose files lie elsewhere
    files         all stubs
"""
