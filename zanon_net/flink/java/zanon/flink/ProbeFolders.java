// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.functions.sink.filesystem.BucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.SimpleVersionedStringSerializer;

/** A folder for each probe, named by the sixteen hexadecimal digits of its number, in which all
 * frames of an element are. */
public final class ProbeFolders implements BucketAssigner<byte[], String> {
    private static final long serialVersionUID = 1L;
    private static final int PROBE_AT = 12;

    @Override
    public String getBucketId(byte[] frames, Context context) {
        long probe = 0;
        for (int i = Long.BYTES - 1; i >= 0; i--) {
            probe = probe << 8 | frames[PROBE_AT + i] & 0xff;
        }
        return String.format("%016x", probe);
    }

    @Override
    public SimpleVersionedSerializer<String> getSerializer() {
        return SimpleVersionedStringSerializer.INSTANCE;
    }
}
