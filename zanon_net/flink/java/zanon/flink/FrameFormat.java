// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Queue;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.MutableRecordAndPosition;
import org.apache.flink.connector.file.src.util.RecordAndPosition;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.types.Row;

/**
 * Files of vote messages: frames of a little-endian u32 length and a message. A record is (shard,
 * frames), the form of a keyed stream of PyFlink: frames of one shard that follow each other go
 * together, for a record costs more than most messages. What else they hold, the shard checks.
 */
public final class FrameFormat implements BulkFormat<Row, FileSourceSplit> {
    private static final long serialVersionUID = 1L;
    private static final int LENGTH_BYTES = 4;
    private static final int SHARD_AT = LENGTH_BYTES + 6;
    private static final int BUFFER_BYTES = 1 << 16;
    private static final int MESSAGE_MIN = 77;
    private static final int MESSAGE_MAX = 1 << 26;
    /** Bytes that are read before the records are handed on. */
    private static final int BATCH_BYTES = 1 << 20;
    /** A record takes no further frame when it has as many bytes. */
    private static final int RECORD_BYTES = 1 << 15;

    @Override
    public Reader createReader(Configuration config, FileSourceSplit split) throws IOException {
        return new Reader(split.path(), 0);
    }

    @Override
    public Reader restoreReader(Configuration config, FileSourceSplit split) throws IOException {
        long offset = split.getReaderPosition().map(position -> position.getOffset()).orElse(0L);
        return new Reader(split.path(), offset);
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<Row> getProducedType() {
        return Types.ROW(Types.INT, Types.PRIMITIVE_ARRAY(Types.BYTE));
    }

    private static final class Reader implements BulkFormat.Reader<Row> {
        private final Path path;
        private final InputStream stream;
        private long offset;

        Reader(Path path, long offset) throws IOException {
            this.path = path;
            this.offset = offset;
            stream = open(path, offset);
        }

        /** A probe that gives its messages up removes them: they are missing then. */
        private static InputStream open(Path path, long offset) throws IOException {
            try {
                FSDataInputStream file = path.getFileSystem().open(path);
                file.seek(offset);
                return new BufferedInputStream(file, BUFFER_BYTES);
            } catch (FileNotFoundException gone) {
                return InputStream.nullInputStream();
            }
        }

        @Override
        public RecordIterator<Row> readBatch() throws IOException {
            Batch batch = new Batch();
            long end = offset + BATCH_BYTES;
            byte[] frame;
            while (offset < end && (frame = readFrame()) != null) {
                offset += frame.length;
                batch.add(frame, offset);
            }
            batch.endRecord();
            return batch.isEmpty() ? null : batch;
        }

        @Override
        public void close() throws IOException {
            stream.close();
        }

        private byte[] readFrame() throws IOException {
            byte[] prefix = stream.readNBytes(LENGTH_BYTES);
            if (prefix.length == 0) {
                return null;
            }
            if (prefix.length < LENGTH_BYTES) {
                throw cut();
            }
            int length = 0;
            for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
                length = length << 8 | prefix[i] & 0xff;
            }
            if (length < MESSAGE_MIN || length > MESSAGE_MAX) {
                throw Refusals.refusal(
                        path + ": byte " + offset + ": no frame of a vote message");
            }
            byte[] frame = Arrays.copyOf(prefix, LENGTH_BYTES + length);
            if (stream.readNBytes(frame, LENGTH_BYTES, length) < length) {
                throw cut();
            }
            return frame;
        }

        private RuntimeException cut() {
            return Refusals.refusal(path + " ends in the midst of a message");
        }
    }

    /** Records and where reading goes on behind each. */
    private static final class Batch implements RecordIterator<Row> {
        private final Queue<Row> rows = new ArrayDeque<>();
        private final Queue<Long> ends = new ArrayDeque<>();
        private final MutableRecordAndPosition<Row> current = new MutableRecordAndPosition<>();

        private final ByteArrayOutputStream record = new ByteArrayOutputStream();
        private int shardOfRecord;
        private long endOfRecord;

        void add(byte[] frame, long end) {
            int shard = frame[SHARD_AT] & 0xff | (frame[SHARD_AT + 1] & 0xff) << 8;
            if (shard != shardOfRecord || record.size() >= RECORD_BYTES) {
                endRecord();
            }
            record.writeBytes(frame);
            shardOfRecord = shard;
            endOfRecord = end;
        }

        void endRecord() {
            if (record.size() > 0) {
                rows.add(Row.of(shardOfRecord, record.toByteArray()));
                ends.add(endOfRecord);
                record.reset();
            }
        }

        boolean isEmpty() {
            return rows.isEmpty();
        }

        @Override
        public RecordAndPosition<Row> next() {
            if (rows.isEmpty()) {
                return null;
            }
            current.set(rows.remove(), ends.remove(), 0);
            return current;
        }

        @Override
        public void releaseBatch() {}
    }
}
