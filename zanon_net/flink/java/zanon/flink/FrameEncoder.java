// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0

package zanon.flink;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.flink.api.common.serialization.Encoder;

/** Messages of answers, which come as frames. */
public final class FrameEncoder implements Encoder<byte[]> {
    private static final long serialVersionUID = 2L;

    @Override
    public void encode(byte[] frames, OutputStream stream) throws IOException {
        stream.write(frames);
    }
}
