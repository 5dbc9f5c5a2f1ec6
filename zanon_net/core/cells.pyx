# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Columns of tables in memory: csrc/rows/cells.h.

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


cdef extern from "zanon/ztable.h" nogil:
    uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n)


NUMBER, TEXT, TIME, TRUTH = "whole numbers", "texts", "times", "truth values"
cdef int64_t NS_PER_DAY = 86_400 * 10**9
cdef dict UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "m": 60 * 10**9,
                      "h": 3600 * 10**9, "D": 86_400 * 10**9, "W": 7 * 86_400 * 10**9}
cdef dict ARROW_CELLS = {
    b"n": (ZN_CELLS_NONE, TEXT),
    b"c": (ZN_CELLS_I8, NUMBER), b"s": (ZN_CELLS_I16, NUMBER), b"i": (ZN_CELLS_I32, NUMBER),
    b"l": (ZN_CELLS_I64, NUMBER), b"C": (ZN_CELLS_U8, NUMBER), b"S": (ZN_CELLS_U16, NUMBER),
    b"I": (ZN_CELLS_U32, NUMBER), b"L": (ZN_CELLS_U64, NUMBER), b"b": (ZN_CELLS_BOOL, TRUTH),
    b"u": (ZN_CELLS_TEXT32, TEXT), b"z": (ZN_CELLS_TEXT32, TEXT), b"U": (ZN_CELLS_TEXT64, TEXT),
    b"Z": (ZN_CELLS_TEXT64, TEXT), b"vu": (ZN_CELLS_VIEW, TEXT), b"vz": (ZN_CELLS_VIEW, TEXT),
    b"tdD": (ZN_CELLS_I32, TIME), b"tdm": (ZN_CELLS_I64, TIME)}
cdef dict ARROW_WORDS = {b"e": "floating-point numbers", b"f": "floating-point numbers",
                         b"g": "floating-point numbers", b"d": "decimal numbers"}
cdef dict ARROW_UNITS = {b"s": "s", b"m": "ms", b"u": "us", b"n": "ns"}
cdef dict NUMPY_CELLS = {
    "i1": ZN_CELLS_I8, "i2": ZN_CELLS_I16, "i4": ZN_CELLS_I32, "i8": ZN_CELLS_I64,
    "u1": ZN_CELLS_U8, "u2": ZN_CELLS_U16, "u4": ZN_CELLS_U32, "u8": ZN_CELLS_U64}
cdef dict NUMPY_WORDS = {"f": "floating-point numbers", "c": "complex numbers",
                         "m": "durations", "V": "records"}


cdef class _Lent:
    """An Arrow array that a stream returned, until it is released."""

    cdef ArrowArray array

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef class Cells:
    """A column of a table in memory, which is lent and not copied (csrc/rows/cells.h).

    name: of the column, for messages.
    values: a NumPy array, a pandas Series, or a column that exports Arrow data.

    kind: NUMBER, TEXT, TIME, TRUTH, or a description of the values, which have no cells then.
    unit_ns: the unit of times, in ns.

    Raises TypeError for another object, ValueError for an array of several dimensions, FormatError
    if the column cannot be read.
    """

    cdef _Kept kept
    cdef list owners
    cdef zn_cell_column column
    cdef Py_ssize_t length
    cdef readonly str kind
    cdef readonly int64_t unit_ns

    def __init__(self, str name not None, values):
        if self.kept is not None:
            raise RuntimeError("a column cannot be filled twice")
        self.kept, self.owners, self.kind = _Kept(), [], NUMBER
        self.unit_ns = 1
        values, valid = pandas_values(values)
        if hasattr(values, "__arrow_c_stream__"):
            self._stream(name, values.__arrow_c_stream__())
        elif hasattr(values, "__arrow_c_array__"):
            schema, array = values.__arrow_c_array__()
            self.owners += [schema, array]
            self._arrow(<ArrowSchema *>PyCapsule_GetPointer(schema, "arrow_schema"),
                        [<size_t>PyCapsule_GetPointer(array, "arrow_array")])
        elif isinstance(values, numpy().ndarray):
            self._numpy(name, values, valid)
        else:
            raise TypeError(f"{name} must be an array, a Series or an Arrow column, not "
                            f"{type(values).__name__}")

    def __len__(self):
        return self.length

    cdef zn_cells *_chunks(self, size_t count) except NULL:
        cdef zn_cells *chunks = <zn_cells *>self.kept.room((count + 1) * sizeof(zn_cells))
        self.column.chunks = chunks
        self.column.chunk_count = count
        return chunks

    cdef int _stream(self, str name, capsule) except -1:
        cdef ArrowArrayStream *stream
        cdef ArrowSchema schema
        cdef _Lent lent
        cdef list places = []
        cdef int rc
        stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        memset(&schema, 0, sizeof(schema))
        rc = stream.get_schema(stream, &schema)
        try:
            while rc == 0:
                lent = _Lent()
                rc = stream.get_next(stream, &lent.array)
                if rc != 0 or lent.array.release == NULL:
                    break
                self.owners.append(lent)
                places.append(<size_t>&lent.array)
            if rc != 0:
                raise FormatError(f"{name} cannot be read: its Arrow stream ended with an error")
            self._arrow(&schema, places)
        finally:
            if schema.release != NULL:
                schema.release(&schema)
        return 0

    cdef int _arrow(self, const ArrowSchema *schema, list places) except -1:
        cdef zn_cells *chunks = self._chunks(len(places))
        cdef const ArrowArray *array
        self._arrow_kind(schema)
        for i, place in enumerate(places):
            array = <const ArrowArray *><size_t>place
            self._arrow_cells(&chunks[i], schema, array)
            self.length += array.length
        return 0

    cdef int _arrow_kind(self, const ArrowSchema *schema) except -1:
        cdef bytes form
        while schema.dictionary != NULL:
            schema = schema.dictionary
        form = schema.format
        if form[:2] == b"ts":
            self.kind, self.unit_ns = TIME, UNITS_NS[ARROW_UNITS[form[2:3]]]
        elif form in ARROW_CELLS:
            self.kind = ARROW_CELLS[form][1]
            self.unit_ns = {b"tdD": NS_PER_DAY, b"tdm": 10**6}.get(form, 1)
        else:
            self.kind = ARROW_WORDS.get(form[:1], "values of another type")
        return 0

    cdef int _arrow_cells(self, zn_cells *cells, const ArrowSchema *schema,
                          const ArrowArray *array) except -1:
        cdef bytes form = schema.format
        cdef zn_cells *words
        cdef size_t last = <size_t>array.n_buffers
        cells.n, cells.offset = array.length, array.offset
        if form[:2] == b"ts":
            cells.kind = ZN_CELLS_I64
        elif form in ARROW_CELLS:
            cells.kind = ARROW_CELLS[form][0]
        else:
            cells.kind = ZN_CELLS_NONE
        if cells.kind == ZN_CELLS_NONE:
            return 0
        if array.null_count != 0:
            cells.valid = <const uint8_t *>array.buffers[0]
        cells.values = array.buffers[1]
        if cells.kind == ZN_CELLS_VIEW:
            cells.blocks = array.buffers + 2
            cells.block_count = last - 3
            cells.block_bytes = <const int64_t *>array.buffers[last - 1]
        elif last > 2:
            cells.bytes = <const uint8_t *>array.buffers[2]
        if array.dictionary != NULL:
            words = <zn_cells *>self.kept.room(sizeof(zn_cells))
            self._arrow_cells(words, schema.dictionary, array.dictionary)
            cells.words = words
        return 0

    cdef int _numpy(self, str name, array, valid) except -1:
        cdef zn_cells *cells = self._chunks(1)
        np = numpy()
        if array.ndim != 1:
            raise ValueError(f"{name} must have one dimension")
        self.length = cells.n = len(array)
        kind = array.dtype.kind
        if kind == "T":
            array, kind = array.astype(object), "O"
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if valid is not None:
            cells.valid = <const uint8_t *>self._lend(np.packbits(valid, bitorder="little"))
        if kind in "iu":
            cells.kind = NUMPY_CELLS[array.dtype.str[1:]]
            cells.values = self._lend(array)
        elif kind == "b":
            self.kind, cells.kind = TRUTH, ZN_CELLS_BOOL
            cells.values = self._lend(np.packbits(array, bitorder="little"))
        elif kind == "M" and np.datetime_data(array.dtype)[0] in UNITS_NS:
            unit, count = np.datetime_data(array.dtype)
            self.kind, cells.kind = TIME, ZN_CELLS_TIME
            self.unit_ns = UNITS_NS[unit] * count
            cells.values = self._lend(array)
        elif kind in "US":
            self.kind, cells.kind = TEXT, ZN_CELLS_TEXT64
            self._padded(cells, straight(array), 4 if kind == "U" else 1)
        elif kind == "O":
            self.kind, cells.kind = TEXT, ZN_CELLS_SPAN
            self._objects(name, cells, array.copy())  # keeps the texts alive
        else:
            self.kind = NUMPY_WORDS.get(kind, "values of another type")
        return 0

    cdef const void *_lend(self, array) except? NULL:
        """Returns the memory of an array, which stays until this object is freed."""
        array = straight(array)
        self.owners.append(array)
        return <const void *><size_t>array.__array_interface__["data"][0]

    cdef int _padded(self, zn_cells *cells, array, size_t character) except -1:
        np = numpy()
        cdef size_t width = array.dtype.itemsize // character
        offsets = np.empty(self.length + 1, np.int64)
        data = np.empty(max(self.length * array.dtype.itemsize, 1), np.uint8)
        cells.values, cells.bytes = self._lend(offsets), <const uint8_t *>self._lend(data)
        zn_padded_texts(self._lend(array), self.length, width, character == 4,
                        <int64_t *>cells.values, <uint8_t *>cells.bytes)
        return 0

    cdef int _objects(self, str name, zn_cells *cells, array) except -1:
        cdef zn_span *spans = <zn_span *>self.kept.room((self.length + 1) * sizeof(zn_span))
        cdef Py_ssize_t i = 0, size
        self.owners.append(array)
        cells.values = spans
        for value in array:
            if isinstance(value, str):
                try:
                    spans[i].p = <const uint8_t *>PyUnicode_AsUTF8AndSize(value, &size)
                    spans[i].n = size
                except UnicodeEncodeError:
                    spans[i].p = NULL  # half of a surrogate pair: no text
            elif isinstance(value, bytes):
                spans[i].p = <const uint8_t *><const char *>value
                spans[i].n = len(value)
            elif not is_missing(value):
                raise TypeError(f"{name} holds objects that are not texts; convert it to whole "
                                "numbers or to texts")
            i += 1
        return 0

    def texts(self, marks, int least):
        """Returns the cells whose mark is not 0 as Texts; cells with a mark below `least` are
        missing.

        marks: uint8[n].
        """
        cdef const uint8_t[::1] view = straight(marks)
        cdef const uint8_t *at = NULL
        cdef zn_cell_column column = self.column
        if view.shape[0] != self.length:
            raise ValueError("marks and cells differ in number")
        if self.length != 0:
            at = &view[0]
        np = numpy()
        count = int(np.count_nonzero(marks))
        size = zn_cells_copy(column, at, self.length, least, NULL, NULL, NULL)
        offsets, valid = np.empty(count + 1, np.int64), np.zeros(count // 8 + 1, np.uint8)
        data = np.empty(max(size, 1), np.uint8)
        zn_cells_copy(column, at, self.length, least, <int64_t *>memory_of(offsets),
                       <uint8_t *>memory_of(valid), <uint8_t *>memory_of(data))
        return Texts(count, offsets, data, valid)


cdef void *memory_of(array) except NULL:
    return <void *><size_t>array.__array_interface__["data"][0]


cdef bint is_missing(value) except -1:
    """Returns true for None, NaN, and what pandas has for missing values."""
    return (value is None or (isinstance(value, float) and value != value)
            or type(value).__name__ in ("NAType", "NaTType"))


cdef tuple pandas_values(values):
    """Returns (values, valid): a Series as an array, and bool[n], true for a value that is present.

    valid is None if the array itself marks missing values. Other objects are returned unchanged.
    """
    if type(values).__module__.partition(".")[0] != "pandas" or not hasattr(values, "dtype"):
        return values, None
    np, dtype = numpy(), values.dtype
    if isinstance(dtype, np.dtype):
        return values.to_numpy(), None
    if getattr(dtype, "tz", None) is not None:
        return values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), None
    try:
        pa = import_module("pyarrow")
    except ImportError:
        if dtype.kind in "iub":
            fill = False if dtype.kind == "b" else 0
            return (values.to_numpy(dtype=dtype.numpy_dtype, na_value=fill),
                    values.notna().to_numpy())
        return values.to_numpy(dtype=object), None
    return pa.array(values, from_pandas=True), None


cdef class Texts:
    """A column of texts, for libraries that read Arrow.

    offsets: int64[n + 1], into data. data: uint8[]. valid: a bit for each text, the lowest first,
    or None if none is missing.
    """

    cdef Py_ssize_t length
    cdef readonly object offsets, data, valid

    def __init__(self, Py_ssize_t length, offsets, data, valid=None):
        self.length = length
        self.offsets, self.data, self.valid = offsets, data, valid

    def __len__(self):
        return self.length

    def __arrow_c_schema__(self):
        """Returns the type as a capsule."""
        schema = <ArrowSchema *>zeroed(sizeof(ArrowSchema))
        capsule = PyCapsule_New(schema, "arrow_schema", destroy_schema)
        schema.name, schema.format, schema.flags = b"", b"U", ARROW_NULLABLE
        schema.private_data = <void *>self
        schema.release = release_schema
        Py_INCREF(self)
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Returns the type and the texts as capsules. Ignores requested_schema, as the protocol
        allows."""
        array = <ArrowArray *>zeroed(sizeof(ArrowArray))
        capsule = PyCapsule_New(array, "arrow_array", destroy_array)
        lent = <zn_lent_array *>zeroed(sizeof(zn_lent_array))
        lent.owner = <PyObject *>self
        if self.valid is not None:
            lent.buffers[0] = memory_of(self.valid)
        lent.buffers[1], lent.buffers[2] = memory_of(self.offsets), memory_of(self.data)
        array.length, array.n_buffers, array.buffers = self.length, 3, lent.buffers
        array.null_count = 0 if self.valid is None else -1  # -1: not counted
        array.private_data = lent
        array.release = release_array
        Py_INCREF(self)
        return self.__arrow_c_schema__(), capsule
