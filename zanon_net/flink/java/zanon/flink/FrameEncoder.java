// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.flink.api.common.serialization.Encoder;

/** Messages of answers as frames: a little-endian u32 length and the message. */
public final class FrameEncoder implements Encoder<byte[]> {
    private static final long serialVersionUID = 1L;

    @Override
    public void encode(byte[] message, OutputStream stream) throws IOException {
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            stream.write(message.length >>> shift);
        }
        stream.write(message);
    }
}
