// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.runtime.execution.SuppressRestartsException;

/**
 * Ends the job where a shard refuses what it reads: it would be refused again, so no restart helps.
 * Everything else passes. A refusal is a frame of magic, version, flags, two bytes, and a text
 * behind its length.
 */
public final class Refusals implements MapFunction<byte[], byte[]> {
    private static final long serialVersionUID = 1L;
    private static final byte[] MAGIC = {'Z', 'N', 'V', 'R'};
    private static final int MAGIC_AT = 4;
    private static final int TEXT_AT = MAGIC_AT + 12;

    @Override
    public byte[] map(byte[] frames) {
        for (int i = 0; i < MAGIC.length; i++) {
            if (frames[MAGIC_AT + i] != MAGIC[i]) {
                return frames;
            }
        }
        int length = frames.length - TEXT_AT;
        throw refusal(new String(frames, TEXT_AT, length, StandardCharsets.UTF_8));
    }

    /** What a task throws so that the job fails at once, with this line as its reason. */
    static SuppressRestartsException refusal(String text) {
        return new SuppressRestartsException(new IOException(text));
    }
}
