"""The manifest of compiled kernels, and which variant a launch takes."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace

import numpy as np
import pytest

from tilecheck.errors import LaunchRefused, UsageError
from tilecheck.jit.cubin import (
    MANIFEST,
    ArrayForm,
    Compiled,
    ConstantForm,
    ScalarForm,
    Variant,
    dtype_name,
    load_kernels,
    read_manifest,
    write_manifest,
)
from tilecheck.jit.layouts import Layout
from tilecheck.jit.records import Argument

FITS = "grid[0] <= cdiv(out.shape[0], T)"
ANY = ArrayForm("float32", (None, 1), (1, 1), (1, 1), 4)
WIDE = ArrayForm("float32", (None, 1), (4, 1), (1, 16), 16)


class DType:
    """Named as an element type of PyTorch is."""

    __module__ = "torch"

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


FLOAT, HALF = DType("float32"), DType("float16")


@pytest.fixture
def matrix(tensor):
    def make(*shape, at=1024, dtype=FLOAT, **rest):
        return tensor(*shape, at=at, dtype=dtype, **rest)

    return make


@pytest.fixture
def compiled(record):
    def make(*variants, names="out T", conditions=(FITS,)):
        files = [f"k.{n}.cubin" for n in range(len(variants))]
        made = (Variant(f, "0" * 64, "k", forms) for f, forms in zip(files, variants, strict=True))
        return Compiled(record(names, *conditions), tuple(made))

    return make


@pytest.fixture
def launched(monkeypatch):
    """What would be given to the driver: the file of the variant, the packed parameters, the addresses."""
    found = []

    def load(self):
        self._function = self.variant.file

    def launch(self, stream, grid, addresses):
        found.append((self.function, self.packed, tuple(addresses)))

    monkeypatch.setattr("tilecheck.jit.cubin._Loaded._load", load)
    monkeypatch.setattr("tilecheck.jit.cubin._Plan.launch", launch)
    return found


@pytest.fixture
def kernel(tmp_path, compiled):
    def make(*variants, **rest):
        write_manifest(tmp_path, "sm_90", [compiled(*variants, **rest)])
        return load_kernels(tmp_path)["kernel"]

    return make


def refused(kernel, grid, *args):
    with pytest.raises(LaunchRefused) as caught:
        kernel.forward(0, grid, args)
    return str(caught.value)


# ---- the file ------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path, compiled):
    forms = (
        (WIDE, ConstantForm(4)),
        (ANY, ConstantForm(True)),
        (ANY, ConstantForm(0.5)),
        (ANY, ScalarForm("int32")),
    )
    written = compiled(*forms)
    write_manifest(tmp_path, "sm_90", [written])
    (read,) = read_manifest(tmp_path)
    assert read == written
    assert [type(v.forms[1].value) for v in read.variants[:3]] == [int, bool, float]


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"null", b"[]", b"{}", b"[" * 100_000, b"\xff", b'{"schema_version": 4, "kernels": [1]}'],
)
def test_what_is_no_manifest_is_not_read(tmp_path, text):
    (tmp_path / MANIFEST).write_bytes(text)
    with pytest.raises(UsageError, match="is not a manifest"):
        load_kernels(tmp_path)


def test_a_folder_without_a_manifest_says_so(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        load_kernels(tmp_path)


def test_a_manifest_of_another_version_says_so(tmp_path, compiled):
    write_manifest(tmp_path, "sm_90", [compiled((ANY, ConstantForm(4)))])
    found = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**found, "schema_version": 1}))
    with pytest.raises(UsageError, match="another version"):
        load_kernels(tmp_path)


def test_a_kernel_that_is_not_verified_is_not_loaded(tmp_path, compiled):
    made = compiled((ANY, ConstantForm(4)))
    write_manifest(tmp_path, "sm_90", [replace(made, record=replace(made.record, verdict="violated"))])
    with pytest.raises(LaunchRefused, match="violated"):
        load_kernels(tmp_path)


def test_a_cubin_with_other_bytes_is_not_loaded(tmp_path, kernel, matrix):
    made = kernel((ANY, ConstantForm(4)))
    with pytest.raises(UsageError, match="cannot read"):
        made.forward(0, (1,), (matrix(4, 4), 4))
    (tmp_path / "k.0.cubin").write_bytes(b"other")
    assert "its bytes have changed" in refused(made, (1,), matrix(4, 4), 4)


# ---- the guard and the choice --------------------------------------------------------------------------------


def test_the_guard_looks_before_a_variant_is_chosen(kernel, launched, matrix):
    made = kernel((ANY, ConstantForm(4)))
    made.forward(0, (2,), (matrix(8, 4), 4))
    assert FITS in refused(made, (3,), matrix(8, 4), 4)
    assert "S2" in refused(made, (1,), matrix(8, 4, strides=(0, 1)), 4)
    assert len(launched) == 1


def test_the_first_variant_that_fits_is_taken(kernel, launched, matrix):
    made = kernel((WIDE, ConstantForm(4)), (ANY, ConstantForm(4)))
    for array in (
        matrix(8, 16),
        matrix(8, 16, at=1028),  # the address
        matrix(8, 15, strides=(16, 1)),  # the extent
        matrix(8, 16, strides=(18, 1)),  # the stride
        matrix(8, 16),
    ):
        made.forward(0, (1,), (array, 4))
    assert [file for file, _, _ in launched] == [
        "k.0.cubin",
        "k.1.cubin",
        "k.1.cubin",
        "k.1.cubin",
        "k.0.cubin",
    ]


def test_an_array_that_no_variant_takes(kernel, launched, matrix):
    made = kernel((ANY, ConstantForm(4)))
    for array in (
        matrix(8, 16, dtype=HALF, itemsize=2),
        matrix(8, 16, strides=(1, 8)),
        matrix(8),
        matrix(8, 16, at=1026),
    ):
        assert "no compiled variant" in refused(made, (1,), array, 4)
    assert not launched


@pytest.mark.parametrize(
    ("value", "others"), [(4, (5, 4.0, True, "4")), (1, (True, 1.0)), (True, (1, 1.0)), (0.5, (1, math.nan))]
)
def test_a_constant_is_what_the_cubin_was_compiled_for(kernel, launched, matrix, value, others):
    made = kernel((ANY, ConstantForm(value)), conditions=())
    for _ in range(2):
        made.forward(0, (1,), (matrix(8, 4), value))
        for other in others:
            assert "no compiled variant" in refused(made, (1,), matrix(8, 4), other)
    assert len(launched) == 2


@pytest.mark.parametrize(
    ("dtype", "takes", "others"),
    [
        ("int32", (0, -(2**31)), (2**31, 1.0, True, None, np.int64(1))),
        ("int64", (2**40,), (2**63, 1.0)),
        ("float32", (0.5, 2), (None, True, "1")),
        ("bool_", (True, False), (1, 0, 1.0)),
    ],
)
def test_a_number_is_of_the_type_that_the_cubin_takes(kernel, launched, matrix, dtype, takes, others):
    made = kernel((ANY, ScalarForm(dtype)), names="out n", conditions=())
    for value in takes:
        made.forward(0, (1,), (matrix(8, 4), value))
    assert len(launched) == len(takes)
    for other in others:
        assert "no compiled variant" in refused(made, (1,), matrix(8, 4), other)


def test_equal_numbers_are_not_taken_for_one_another(kernel, launched, matrix):
    made = kernel((ANY, ScalarForm("float32")), names="out n", conditions=())
    for value in (0.0, -0.0, 0, 0.0):
        made.forward(0, (1,), (matrix(8, 4), value))
    signs = [math.copysign(1, struct.unpack_from("f", packed, 24)[0]) for _, packed, _ in launched]
    assert signs == [1, -1, 1, 1]


def test_parameters_are_packed_at_their_natural_alignment(kernel, launched, matrix):
    vector = ArrayForm("float32", (1,), (1,), (1,), 4)
    made = kernel(
        (ScalarForm("int32"), vector, ConstantForm(4), ScalarForm("int64")), names="n out T m", conditions=()
    )
    made.forward(0, (1,), (7, matrix(8, at=64), 4, 9))
    ((_, packed, addresses),) = launched
    assert addresses == (64,)
    assert struct.unpack("@i P i i q", packed) == (7, 0, 8, 1, 9)


def test_a_parameter_that_is_not_used_is_what_the_examples_had(tmp_path, compiled, launched, matrix):
    made = compiled((ANY, ANY, ConstantForm(4)), names="dead out T")
    unused = (Argument("dead", "unused"), *made.record.arguments[1:])
    write_manifest(tmp_path, "sm_90", [replace(made, record=replace(made.record, arguments=unused))])
    kernel = load_kernels(tmp_path)["kernel"]
    kernel.forward(0, (1,), (matrix(8, 4, at=64), matrix(8, 4), 4))
    assert launched[0][2] == (64, 1024)


# ---- forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "fits"),
    [
        ((4, 16), (16, 1), True),
        ((4, 0), (16, 1), True),
        ((4, 16), (16, 2), False),
        ((4, 16), (18, 1), False),
        ((4, 15), (16, 1), False),
        ((4, 16), (2**31, 1), False),
        ((2**31, 16), (0, 1), False),
        ((16,), (1,), False),
        ((1, 4, 16), (64, 16, 1), False),
    ],
)
def test_a_form_takes_what_the_cubin_was_compiled_for(shape, strides, fits):
    assert WIDE.fits("float32", Layout(shape, strides, 4)) is fits
    assert not WIDE.fits("int32", Layout(shape, strides, 4))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float32", "float32"), ("<f2", "float16"), (">f4", ""), ("?", "bool_"), ("uint8", "uint8"), ("c8", "")],
)
def test_element_types_by_the_names_of_cutile(dtype, name):
    assert dtype_name(np.zeros(2, dtype)) == name


def test_element_types_of_tensors(tensor):
    assert dtype_name(tensor(2, dtype=DType("bfloat16"))) == "bfloat16"
    assert dtype_name(tensor(2, dtype=DType("bool"))) == "bool_"
    assert dtype_name(3) == ""
