# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows of flows by the Arrow C data interface: lent, not copied, until the importer releases them.

cdef enum:
    ARROW_BUFFERS = 3
    ARROW_NULLABLE = 2
ARROW_FORMATS = {"bool": b"b", "uint8": b"C", "uint16": b"S", "uint32": b"I", "uint64": b"L",
                 "int64": b"l", "ms": b"g", "s": b"g", "time": b"tsn:UTC", "text": b"i"}


# Private data of an array: its buffers, and the object that owns their memory.
cdef struct zn_lent_array:
    const void *buffers[ARROW_BUFFERS]
    PyObject *owner


# Private data of a stream.
cdef struct zn_lent_stream:
    PyObject *batch
    bint ended


cdef void release_schema(ArrowSchema *schema) noexcept with gil:
    for i in range(schema.n_children):
        if schema.children[i] != NULL:
            if schema.children[i].release != NULL:
                schema.children[i].release(schema.children[i])
            free(schema.children[i])
    free(schema.children)
    if schema.dictionary != NULL:
        if schema.dictionary.release != NULL:
            schema.dictionary.release(schema.dictionary)
        free(schema.dictionary)
    Py_DECREF(<object>schema.private_data)
    schema.release = NULL


cdef void release_array(ArrowArray *array) noexcept with gil:
    for i in range(array.n_children):
        if array.children[i] != NULL:
            if array.children[i].release != NULL:
                array.children[i].release(array.children[i])
            free(array.children[i])
    free(array.children)
    if array.dictionary != NULL:
        if array.dictionary.release != NULL:
            array.dictionary.release(array.dictionary)
        free(array.dictionary)
    Py_DECREF(<object>(<zn_lent_array *>array.private_data).owner)
    free(array.private_data)
    array.release = NULL


cdef void destroy_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void destroy_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void destroy_stream(object capsule) noexcept:
    cdef ArrowArrayStream *stream
    stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


cdef int stream_schema(ArrowArrayStream *stream, ArrowSchema *out) noexcept with gil:
    try:
        (<RowBatch>(<zn_lent_stream *>stream.private_data).batch).fill_schema(out)
    except MemoryError:
        return ENOMEM
    return 0


cdef int stream_next(ArrowArrayStream *stream, ArrowArray *out) noexcept with gil:
    """Returns the batch at the first call, and then a released array, which marks the end."""
    cdef zn_lent_stream *lent = <zn_lent_stream *>stream.private_data
    memset(out, 0, sizeof(out[0]))
    if lent.ended:
        return 0
    try:
        (<RowBatch>lent.batch).fill_array(out)
    except MemoryError:
        return ENOMEM
    lent.ended = True
    return 0


cdef const char *stream_error(ArrowArrayStream *stream) noexcept nogil:
    return NULL


cdef void release_stream(ArrowArrayStream *stream) noexcept with gil:
    Py_DECREF(<object>(<zn_lent_stream *>stream.private_data).batch)
    free(stream.private_data)
    stream.release = NULL


cdef void *zeroed(size_t bytes) except NULL:
    cdef void *block = malloc(bytes)
    if block == NULL:
        raise MemoryError
    memset(block, 0, bytes)
    return block


cdef bytes metadata_of(texts):
    """Encodes pairs of texts as Arrow metadata; empty if there are no pairs."""
    parts = [struct.pack("=i", len(texts))]
    for text in (word.encode() for pair in texts.items() for word in pair):
        parts += [struct.pack("=i", len(text)), text]
    return b"".join(parts) if texts else b""


cdef class RowBatch:
    """Rows `start` to `end` of a table that an engine drained, for libraries that read Arrow.

    fields: (name, type, may be missing, texts about it) of each column; the types are FIELD_TYPES.
    table: as drain() returns it; its memory is lent until the last importer releases it.

    Raises ValueError if the fields, the rows and the table do not fit together.
    """

    cdef list fields
    cdef TableRows table
    cdef Py_ssize_t start, end

    def __init__(self, fields, TableRows table not None, Py_ssize_t start, Py_ssize_t end):
        if self.table is not None:
            raise RuntimeError("a batch cannot be filled twice")
        if not 0 <= start <= end <= table.rows:
            raise ValueError("the table of a batch has no such rows")
        if [kind for _name, kind, *_about in fields] != [column[0] for column in table.columns]:
            raise ValueError("the fields of a batch do not fit its table")
        self.fields = [(name.encode(), ARROW_FORMATS[kind], nullable, metadata_of(about))
                       for name, kind, nullable, about in fields]
        self.table = table
        self.start, self.end = start, end

    def __len__(self):
        return self.end - self.start

    cdef int fill_schema(self, ArrowSchema *out) except -1:
        self._schema(out, b"", b"+s", b"", 0)
        out.children = <ArrowSchema **>zeroed((len(self.fields) + 1) * sizeof(out.children[0]))
        for name, form, nullable, about in self.fields:
            child = <ArrowSchema *>zeroed(sizeof(ArrowSchema))
            out.children[out.n_children] = child
            out.n_children += 1
            self._schema(child, name, form, about, ARROW_NULLABLE if nullable else 0)
            if form == b"i":
                child.dictionary = <ArrowSchema *>zeroed(sizeof(ArrowSchema))
                self._schema(child.dictionary, b"", b"u", b"", 0)
        return 0

    cdef void _schema(self, ArrowSchema *out, bytes name, bytes form, bytes about, int64_t flags):
        """Fills the schema. Its texts live as long as this object, or as the module."""
        memset(out, 0, sizeof(out[0]))
        out.name, out.format = name, form
        out.metadata = NULL if len(about) == 0 else <const char *>about
        out.flags = flags
        out.private_data = <void *>self
        out.release = release_schema
        Py_INCREF(self)

    cdef int fill_array(self, ArrowArray *out) except -1:
        cdef ArrowArray *child
        cdef bytes offsets, words
        self._array(out, self.end - self.start, 1)
        out.children = <ArrowArray **>zeroed((len(self.fields) + 1) * sizeof(out.children[0]))
        for _kind, values, valid, texts in self.table.columns:
            child = <ArrowArray *>zeroed(sizeof(ArrowArray))
            out.children[out.n_children] = child
            out.n_children += 1
            self._array(child, self.end - self.start, 2)
            child.offset = self.start
            child.null_count = 0 if valid is None else -1  # -1: not counted
            child.buffers[0] = NULL if valid is None else self.table.block.bytes + <size_t>valid
            child.buffers[1] = self.table.block.bytes + <size_t>values
            if texts is not None:
                count, offsets, words = texts
                child.dictionary = <ArrowArray *>zeroed(sizeof(ArrowArray))
                self._array(child.dictionary, count, 3)
                child.dictionary.buffers[1] = <const char *>offsets
                child.dictionary.buffers[2] = <const char *>words
        return 0

    cdef int _array(self, ArrowArray *out, int64_t rows, int64_t buffers) except -1:
        cdef zn_lent_array *lent = <zn_lent_array *>zeroed(sizeof(zn_lent_array))
        lent.owner = <PyObject *>self
        memset(out, 0, sizeof(out[0]))
        out.length, out.n_buffers, out.buffers = rows, buffers, lent.buffers
        out.private_data = lent
        out.release = release_array
        Py_INCREF(self)
        return 0

    def __arrow_c_schema__(self):
        """Returns the columns' names and types as a capsule."""
        schema = <ArrowSchema *>zeroed(sizeof(ArrowSchema))
        capsule = PyCapsule_New(schema, "arrow_schema", destroy_schema)
        self.fill_schema(schema)
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Returns the columns' types and the rows as capsules. Ignores requested_schema, as the
        protocol allows."""
        array = <ArrowArray *>zeroed(sizeof(ArrowArray))
        capsule = PyCapsule_New(array, "arrow_array", destroy_array)
        self.fill_array(array)
        return self.__arrow_c_schema__(), capsule

    def __arrow_c_stream__(self, requested_schema=None):
        """Returns the rows as a stream of one batch."""
        stream = <ArrowArrayStream *>zeroed(sizeof(ArrowArrayStream))
        capsule = PyCapsule_New(stream, "arrow_array_stream", destroy_stream)
        lent = <zn_lent_stream *>zeroed(sizeof(zn_lent_stream))
        lent.batch = <PyObject *>self
        stream.get_schema = stream_schema
        stream.get_next = stream_next
        stream.get_last_error = stream_error
        stream.private_data = lent
        stream.release = release_stream
        Py_INCREF(self)
        return capsule
